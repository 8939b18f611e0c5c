//go:build !linux

package terminator

func memoryOfProcess() int64 { return 0 }
