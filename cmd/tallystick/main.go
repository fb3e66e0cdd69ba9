// Command tallystick is the server of all Tallystick products and their
// command line. `tallystick --help` says what it can do.
package main

import (
	"os"
	_ "time/tzdata" // campaigns end by local days, on machines without zones too
)

// version is set by the build.
var version = "dev"

func main() { os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr)) }
