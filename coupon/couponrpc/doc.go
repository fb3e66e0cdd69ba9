// Package couponrpc carries coupons over the network: gRPC, gRPC-Web, JSON and
// the REST paths of the contract, from one protobuf definition.
//
// [New] returns the handler of both services. A refusal travels as a status with
// google.rpc.ErrorInfo whose reason is its code; on REST paths it is
// application/problem+json with the same code.
package couponrpc
