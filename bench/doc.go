// Package bench measures Tallystick beside its rivals and breaks it under
// load, both with the real binary and real servers. Its tests run small by
// default; `make bench` and `make faults` run them at full size, and the former
// writes RESULTS.md.
package bench
