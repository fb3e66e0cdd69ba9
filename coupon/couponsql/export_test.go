package couponsql

import "github.com/tallystick/tallystick/shard"

// WalletQuery is the query of a page of a wallet.
func WalletQuery(d shard.Dialect) shard.Statement { return selectWallet.in(d) }

// WalletUpdate is the statement that brings a row of a wallet up to date.
func WalletUpdate(d shard.Dialect) shard.Statement { return updateWallet.in(d) }

// StatementsOf splits a file of a schema.
var StatementsOf = statementsOf

// Steps are the steps of a schema.
var Steps = stepsOf
