// Command cluster runs a Kubernetes control plane for development and tests: the unmodified
// kube-apiserver over an embedded etcd, and, as a second process, the kube-controller-manager.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

const usage = `usage:
  cluster apiserver --folder <data folder> [--port <port, 0 for a free one>] [--audit-log <file>]
  cluster controller-manager --folder <data folder of a running apiserver>`

// options are the command line of both subcommands.
type options struct {
	folder   string
	port     int
	auditLog string
}

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("a subcommand is missing\n%s", usage))
	}
	opts, err := parseOptions(os.Args[1], os.Args[2:])
	if err != nil {
		fail(err)
	}
	switch os.Args[1] {
	case "apiserver":
		err = runAPIServer(opts)
	case "controller-manager":
		err = runControllerManager(opts)
	default:
		err = fmt.Errorf("unknown subcommand %q\n%s", os.Args[1], usage)
	}
	if err != nil {
		fail(err)
	}
}

// parseOptions makes the folder absolute and enters it: the unix sockets of etcd have relative
// names, since a socket's path may have 108 bytes at most and a data folder may be deeper.
func parseOptions(subcommand string, arguments []string) (options, error) {
	var opts options
	flags := flag.NewFlagSet(subcommand, flag.ExitOnError)
	flags.StringVar(&opts.folder, "folder", "", "data folder, made when missing")
	flags.IntVar(&opts.port, "port", 0, "port on the loopback address, 0 for a free one")
	flags.StringVar(&opts.auditLog, "audit-log", "", "file for audit events as JSON lines")
	if err := flags.Parse(arguments); err != nil {
		return opts, err
	}
	if opts.folder == "" {
		return opts, fmt.Errorf("--folder is missing\n%s", usage)
	}
	var err error
	if opts.folder, err = filepath.Abs(opts.folder); err != nil {
		return opts, err
	}
	if opts.auditLog != "" {
		if opts.auditLog, err = filepath.Abs(opts.auditLog); err != nil {
			return opts, err
		}
	}
	if err = os.MkdirAll(opts.folder, 0o700); err != nil {
		return opts, err
	}
	return opts, os.Chdir(opts.folder)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "cluster:", err)
	os.Exit(1)
}
