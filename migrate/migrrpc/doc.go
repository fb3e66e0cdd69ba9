// Package migrrpc steers a migration over the network: gRPC, gRPC-Web and JSON
// on one HTTP handler, and a client.
//
//	local := migrrpc.NewLocal(migration, plan, source, state)
//	defer local.Close()
//	path, handler := migrrpc.Handler(local)
//	mux.Handle(path, handler)
//
//	client, err := migrrpc.Dial("http://127.0.0.1:7071", migrrpc.Options{})
//	report, err := client.Status(ctx)
//
// [Local] and [Client] are the same [Service]: one is a pod's own view of its
// migration, the other asks a pod for it. What a call changes holds for all
// pods; a verification runs in the pod that was asked and ends with it.
//
// Errors cross the network as [Error]. A call that got no answer fails with
// code UNAVAILABLE. All calls may be repeated, but for a Verify that begins
// one: that fails while one is running.
package migrrpc
