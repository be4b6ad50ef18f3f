package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	apiserveroptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

const (
	readyTimeout     = 60 * time.Second
	readyPollPeriod  = 20 * time.Millisecond
	listenTimeout    = 5 * time.Second
	listenPollPeriod = 100 * time.Millisecond
	shutdownTimeout  = 5 * time.Second
)

const auditPolicyFile = "audit-policy.yaml"

// auditPolicy keeps the stage RequestReceived: it is written before the request does anything,
// so whoever has an answer finds the request in the log.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
  - level: Metadata
`

// runAPIServer serves until SIGTERM or SIGINT. It prints one line "ready <url>" once /readyz
// says so and admin.kubeconfig is written.
func runAPIServer(opts options) error {
	ctx := apiserver.SetupSignalContext()
	logs.InitLogs()
	defer logs.FlushLogs()
	if err := ensurePKI(); err != nil {
		return err
	}
	listener, err := listen(ctx, opts.port)
	if err != nil {
		return err
	}
	etcd, err := startEtcd()
	if err != nil {
		return err
	}
	defer stopEtcd(etcd)
	completed, err := completeOptions(ctx, opts, listener)
	if err != nil {
		return err
	}
	url := "https://" + listener.Addr().String()
	stopped := make(chan error, 1)
	go func() { stopped <- app.Run(ctx, completed) }()
	if err := announceReady(ctx, url, stopped); err != nil {
		return err
	}
	select {
	case err := <-stopped:
		return ignoreCancel(err)
	case err := <-etcd.Err():
		return fmt.Errorf("etcd stopped: %w", err)
	case <-ctx.Done():
		return awaitStop(stopped)
	}
}

// awaitStop bounds the farewell: open watches would keep the server for a minute.
func awaitStop(stopped <-chan error) error {
	select {
	case err := <-stopped:
		return ignoreCancel(err)
	case <-time.After(shutdownTimeout):
		return nil
	}
}

// listen takes the port before anything else starts: with port 0 there is no moment in which
// another process could take it. A given port may still be in the hands of a predecessor.
func listen(ctx context.Context, port int) (net.Listener, error) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	deadline := time.Now().Add(listenTimeout)
	for {
		listener, err := net.Listen("tcp", address)
		if err == nil {
			return listener, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(listenPollPeriod):
		}
	}
}

// completeOptions parses the ordinary flags of kube-apiserver; only the listener has none.
func completeOptions(
	ctx context.Context, opts options, listener net.Listener,
) (apiserveroptions.CompletedOptions, error) {
	server := apiserveroptions.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range server.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	arguments, err := serverArguments(opts)
	if err != nil {
		return apiserveroptions.CompletedOptions{}, err
	}
	if err := flags.Parse(arguments); err != nil {
		return apiserveroptions.CompletedOptions{}, err
	}
	server.SecureServing.Listener = listener
	if err := server.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return apiserveroptions.CompletedOptions{}, err
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	completed, err := server.Complete(ctx)
	if err != nil {
		return completed, err
	}
	return completed, errors.Join(completed.Validate()...)
}

func serverArguments(opts options) ([]string, error) {
	arguments := []string{
		"--etcd-servers=" + etcdClientSocket,
		"--bind-address=127.0.0.1",
		"--client-ca-file=" + caCertificateFile,
		"--tls-cert-file=" + serverCertificate,
		"--tls-private-key-file=" + serverKeyFile,
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + serviceAccountKey,
		"--service-account-signing-key-file=" + serviceAccountKey,
		"--service-cluster-ip-range=10.0.0.0/24",
		"--allow-privileged=true",
		// The loopback address may not stand in an EndpointSlice, and nothing here reads it.
		"--endpoint-reconciler-type=none",
	}
	if opts.auditLog == "" {
		return arguments, nil
	}
	if err := os.WriteFile(auditPolicyFile, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	return append(arguments,
		"--audit-policy-file="+auditPolicyFile,
		"--audit-log-path="+opts.auditLog,
		"--audit-log-mode=blocking",
		"--audit-log-maxsize=1024",
		"--audit-log-maxbackup=1",
	), nil
}

func announceReady(ctx context.Context, url string, stopped <-chan error) error {
	client, err := rest.HTTPClientFor(clientConfig("admin", url))
	if err != nil {
		return err
	}
	client.Timeout = readyTimeout
	deadline := time.After(readyTimeout)
	for !isReady(ctx, client, url) {
		select {
		case err := <-stopped:
			return fmt.Errorf("the API server stopped while starting: %w", err)
		case <-ctx.Done():
			return nil
		case <-deadline:
			return fmt.Errorf("the API server was not ready after %s", readyTimeout)
		case <-time.After(readyPollPeriod):
		}
	}
	for name := range clients {
		if err := writeKubeconfig(name, url); err != nil {
			return err
		}
	}
	_, err = fmt.Println("ready", url)
	return err
}

func isReady(ctx context.Context, client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func ignoreCancel(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
