module github.com/tallystick/tallystick

go 1.26.8
