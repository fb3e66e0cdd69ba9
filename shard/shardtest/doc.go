// Package shardtest is what every shard.Database has to do: [TestDatabase].
package shardtest
