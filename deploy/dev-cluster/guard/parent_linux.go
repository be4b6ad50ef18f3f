package main

import (
	"runtime"
	"syscall"
)

func init() {
	// The signal belongs to a thread and survives exec; init runs on the one that stays.
	runtime.LockOSThread()
}

func dieWithParent() error {
	_, _, code := syscall.RawSyscall(
		syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0)
	if code != 0 {
		return code
	}
	return nil
}
