// Command adapter-go is an adapter of ProviderAPI in Go, for Parrot, a make-believe vendor that lives
// in the memory of the same process. README.md says what to copy from it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

type options struct {
	listen, portFile       string
	tlsCert, tlsKey, tlsCA string
	endpointHosts          string
	drainTimeout           time.Duration
	buildVersion           string
	vendor                 vendorOptions
}

func main() {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	given, err := readOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if err := serveUntil(ctx, given); err != nil {
		slog.Error("adapter failed", "error", err)
		os.Exit(1)
	}
}

func readOptions(args []string) (options, error) {
	var given options
	flags := flag.NewFlagSet("adapter-go", flag.ContinueOnError)
	flags.StringVar(&given.listen, "listen", "127.0.0.1:0", "where ProviderAPI is served; port 0 takes a free one")
	flags.StringVar(&given.portFile, "port-file", "", `written once it listens: {"grpcPort":...,"adminPort":0}`)
	flags.StringVar(&given.tlsCert, "tls-cert", "", "this server's certificate (PEM); with --tls-key and --tls-ca")
	flags.StringVar(&given.tlsKey, "tls-key", "", "its private key (PEM)")
	flags.StringVar(&given.tlsCA, "tls-ca", "", "the authority that clients' certificates must come from (PEM)")
	flags.StringVar(&given.endpointHosts, "endpoint-hosts", "api.parrot.example,*.api.parrot.example",
		"hosts that endpoints may have, by commas")
	flags.DurationVar(&given.drainTimeout, "drain-timeout", 20*time.Second, "how long calls in flight may take after SIGTERM")
	flags.StringVar(&given.buildVersion, "build-version", "development", "what GetProviderInfo calls this build")
	flags.DurationVar(&given.vendor.Delay, "vendor-delay", 0, "how long the vendor takes for each call; it acts after half of it")
	flags.StringVar(&given.vendor.File, "vendor-file", "", "where the vendor keeps its instances, so that they outlive the process")
	flags.DurationVar(&given.vendor.ListLag, "vendor-list-lag", 0, "the vendor's lists show what was so long ago")
	flags.DurationVar(&given.vendor.CreateTime, "vendor-create-time", 0, "how long a new instance is provisioning")
	flags.DurationVar(&given.vendor.RemoveTime, "vendor-remove-time", 0, "how long a deleted instance is deleting")
	if err := flags.Parse(args); err != nil {
		return given, err
	}
	if flags.NArg() > 0 {
		return given, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return given, nil
}

func serveUntil(ctx context.Context, given options) error {
	config, err := tlsConfig(given.tlsCert, given.tlsKey, given.tlsCA)
	if err != nil {
		return err
	}
	if config == nil && !isLoopback(given.listen) {
		return fmt.Errorf("cannot speak plaintext at %q: it is not loopback; name certificates", given.listen)
	}
	listener, err := net.Listen("tcp", given.listen)
	if err != nil {
		return err
	}
	made := newAdapter(given)
	if err := made.vendor.load(); err != nil {
		return err
	}
	served := newServer(made, config)
	ended := make(chan error, 1)
	go func() { ended <- served.serve(listener) }()
	slog.Info("adapter started", "address", listener.Addr().String(), "isTLS", config != nil)
	if given.portFile != "" {
		if err := writePorts(given.portFile, listener.Addr()); err != nil {
			return err
		}
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	slog.Info("adapter stops")
	if !served.drain(given.drainTimeout) {
		slog.Warn("stopped with calls in flight", "limit", given.drainTimeout)
	}
	served.close()
	return nil
}

func newAdapter(given options) *adapter {
	hosts := strings.Split(given.endpointHosts, ",")
	return &adapter{
		vendor: newVendor(given.vendor),
		check: &checker{
			accounts: map[string]account{
				defaultAccount: {vendorAccount: "acct-1", hosts: hosts},
				"second":       {vendorAccount: "acct-2", hosts: hosts},
			},
			regions: []string{"eu", "us"},
		},
		flights:  newFlights(),
		build:    given.buildVersion,
		draining: make(chan struct{}),
	}
}

// writePorts writes in one piece: whoever waits for the file never reads half of it.
func writePorts(path string, address net.Addr) error {
	tcp, isTCP := address.(*net.TCPAddr)
	if !isTCP {
		return fmt.Errorf("no TCP address: %s", address)
	}
	content, err := json.Marshal(map[string]int{"grpcPort": tcp.Port, "adminPort": 0})
	if err != nil {
		return err
	}
	draft := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	if err := os.WriteFile(draft, append(content, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(draft, path)
}
