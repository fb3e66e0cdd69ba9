package realtest

import (
	"encoding/json"
	"net/http"
)

// repairs is how the proxy changes replies of the server.
type repairs struct {
	tableIDs     map[string]string // by table; "": the server's
	omitOldItems bool
}

// apply returns the reply to req as the client gets it.
func (r repairs) apply(req DynamoRequest, reply *reply) *reply {
	id := r.tableIDs[req.Table()]
	switch {
	case id != "" && req.Operation == "DescribeTable" && reply.status == http.StatusOK:
		reply.body = edit(reply.body, func(whole object) {
			whole["Table"] = edit(whole["Table"], func(table object) { table["TableId"], _ = json.Marshal(id) })
		})
	case r.omitOldItems && reply.status == http.StatusBadRequest && req.Writes():
		reply.body = edit(reply.body, func(whole object) { delete(whole, "Item") })
	}
	return reply
}

// An object is a JSON object whose values are left as they are.
type object = map[string]json.RawMessage

// edit returns the JSON object text changed by change, and text as it is where
// that is none.
func edit(text json.RawMessage, change func(object)) json.RawMessage {
	var o object
	if json.Unmarshal(text, &o) != nil || o == nil {
		return text
	}
	change(o)
	edited, err := json.Marshal(o)
	if err != nil {
		return text
	}
	return edited
}
