//go:build !linux

package drivertest

import "os/exec"

func confine(*exec.Cmd) {}
