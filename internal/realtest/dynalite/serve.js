// Serves DynamoDB's API: node serve.js PORT [FOLDER]. Without a folder the
// tables live in memory.
const dynalite = require('dynalite')
const db = require('dynalite/db')

// AWS hands out the item that a condition did not hold for. dynalite checks
// conditions under the item's lock, so this is that very item.
for (const operation of ['putItem', 'updateItem', 'deleteItem']) {
  const { types } = require('dynalite/validations/' + operation)
  types.ReturnValuesOnConditionCheckFailure = { type: 'String', enum: ['ALL_OLD', 'NONE'] }
}
const { checkConditional } = db
db.checkConditional = (request, item) => {
  const err = checkConditional(request, item)
  if (err && item && request.ReturnValuesOnConditionCheckFailure === 'ALL_OLD') err.body.Item = item
  return err
}

const [port, path] = process.argv.slice(2)
const server = dynalite({ path, createTableMs: 0, deleteTableMs: 0, updateTableMs: 0 })

// dynalite throws, and so ends, when a client goes away in the middle of a
// request, which is what half of our tests do. AWS carries on; so without its
// error listener does this.
const [handle] = server.listeners('request')
server.removeAllListeners('request')
server.on('request', (req, res) => {
  const on = req.on
  req.on = (event, listener) => (event === 'error' ? req : on.call(req, event, listener))
  handle(req, res)
})

// A connection that Node closes for being idle may take a request with it that
// was just being sent: the client would see an unknown outcome nobody caused.
server.keepAliveTimeout = 0
server.headersTimeout = 0
server.requestTimeout = 0

process.on('SIGTERM', () => {
  server.close(() => process.exit(0))
  server.closeAllConnections()
})
server.listen(Number(port), '127.0.0.1', () => console.log('listening'))
