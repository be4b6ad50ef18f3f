package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	pb "digital-human-provider/examples/adapter-go/gen/dhp/provider/v1"
)

func TestACallWithoutDeadlineIsRefusedButForProviderInfo(t *testing.T) {
	b := newBench(t, vendorOptions{})
	want := refusal{code: codes.InvalidArgument, reason: "INVALID_FIELD", fields: []string{"grpc-timeout"}}
	_, err := b.client.Ensure(t.Context(), ensureRequest())
	expectRefusal(t, err, want)
	_, err = b.client.Describe(t.Context(), describeRequest())
	expectRefusal(t, err, want)
	if _, err := b.client.GetProviderInfo(t.Context(), &pb.GetProviderInfoRequest{}); err != nil {
		t.Error(err)
	}
}

func TestAMethodThatDoesNotExistIsUnsupported(t *testing.T) {
	b := newBench(t, vendorOptions{})
	err := b.conn.Invoke(callContext(t), "/dhp.provider.v1.ProviderAPI/Reboot", &pb.DeleteRequest{}, &pb.DeleteResponse{})
	expectRefusal(t, err, refusal{code: codes.Unimplemented, reason: "UNSUPPORTED"})
}

func TestTheParameterSchemaIsJSON(t *testing.T) {
	b := newBench(t, vendorOptions{})
	info, err := b.client.GetProviderInfo(t.Context(), &pb.GetProviderInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]struct{ Type, Pattern string }
	}
	if err := json.Unmarshal([]byte(info.GetParameterSchemaJson()), &schema); err != nil {
		t.Fatal(err)
	}
	for name, one := range parameters {
		if got := schema.Properties[name]; got.Type != "string" || got.Pattern != one.pattern {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestABugTellsNothingOfItself(t *testing.T) {
	b := newBench(t, vendorOptions{})
	b.vendor.fault = func(string) error { panic("s3cret") }
	_, err := b.client.Describe(callContext(t), describeRequest())
	if got := status.Convert(err); got.Code() != codes.Internal || len(got.Details()) != 0 {
		t.Errorf("%v", got)
	}
	_, err = b.client.Ensure(callContext(t), ensureRequest())
	if got := status.Convert(err); got.Code() != codes.Internal || len(got.Details()) != 0 {
		t.Errorf("%v", got)
	}
	b.vendor.fault = nil
	b.mustEnsure(t, pb.Change_CHANGE_CREATED)
}

func TestAStoppingServerFinishesWhatItHasAndRefusesTheRest(t *testing.T) {
	b := newBench(t, vendorOptions{})
	reached, release := make(chan struct{}), make(chan struct{})
	b.vendor.fault = func(call string) error {
		if call == "create" {
			close(reached)
			<-release
		}
		return nil
	}
	stream, err := b.client.WatchHealth(t.Context(), &pb.WatchHealthRequest{OwnerCluster: "c1", Targets: []*pb.Target{testTarget()}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := b.client.Ensure(callContext(t), ensureRequest())
		answered <- err
	}()
	<-reached
	drained := make(chan bool, 1)
	go func() { drained <- b.server.drain(time.Minute) }()
	<-b.adapter.draining
	_, err = b.client.GetProviderInfo(callContext(t), &pb.GetProviderInfoRequest{})
	expectRefusal(t, err, refusal{code: codes.Unavailable, reason: "SHUTTING_DOWN"})
	health, err := healthpb.NewHealthClient(b.conn).Check(callContext(t), &healthpb.HealthCheckRequest{Service: "dhp.provider.v1.ProviderAPI"})
	if err != nil || health.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("health %v %v", health, err)
	}
	for err = nil; err == nil; {
		_, err = stream.Recv()
	}
	expectRefusal(t, err, refusal{code: codes.Unavailable, reason: "SHUTTING_DOWN", outcome: pb.Outcome_OUTCOME_UNKNOWN})
	close(release)
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if !<-drained {
		t.Error("not drained")
	}
	b.server.close()
}

func TestADrainThatTakesTooLongIsGivenUp(t *testing.T) {
	b := newBench(t, vendorOptions{Delay: time.Hour})
	begun := make(chan struct{})
	go func() {
		close(begun)
		_, _ = b.client.Describe(callContext(t), describeRequest())
	}()
	<-begun
	for isIdle := true; isIdle; {
		b.server.mu.Lock()
		isIdle = b.server.calls == 0
		b.server.mu.Unlock()
	}
	if b.server.drain(10 * time.Millisecond) {
		t.Error("drained while a call was in flight")
	}
}

func TestMutualTLSTakesNewFilesWithoutARestart(t *testing.T) {
	folder := t.TempDir()
	paths := [3]string{filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"), filepath.Join(folder, "ca.crt")}
	first, second := newAuthority(t), newAuthority(t)
	first.write(t, paths)
	config, err := tlsConfig(paths[0], paths[1], paths[2])
	if err != nil {
		t.Fatal(err)
	}
	served := newServer(newQuietAdapter(vendorOptions{}), config)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = served.serve(listener) }()
	t.Cleanup(served.grpc.Stop)
	ask := func(config *tls.Config) error {
		conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(config)))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err = pb.NewProviderAPIClient(conn).GetProviderInfo(ctx, &pb.GetProviderInfoRequest{})
		return err
	}
	if err := ask(first.client()); err != nil {
		t.Fatal(err)
	}
	if err := ask(&tls.Config{RootCAs: first.pool}); err == nil {
		t.Error("a client without certificate was served")
	}
	if err := os.WriteFile(paths[0], []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ask(first.client()); err != nil {
		t.Errorf("half written files: %v", err)
	}
	second.write(t, paths)
	if err := ask(second.client()); err != nil {
		t.Errorf("new files: %v", err)
	}
	if err := ask(first.client()); err == nil {
		t.Error("a client of the old authority was served")
	}
}

func TestPlaintextIsForLoopbackOnly(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "localhost:0": true, "[::1]:1": true, "127.9.9.9:1": true,
		"0.0.0.0:1": false, ":1": false, "10.0.0.1:1": false, "example.com:1": false, "": false,
	} {
		if got := isLoopback(address); got != want {
			t.Errorf("%q: %v", address, got)
		}
	}
	if err := serveUntil(t.Context(), options{listen: "0.0.0.0:0"}); err == nil {
		t.Error("plaintext to the world")
	}
	if _, err := tlsConfig("a", "", ""); err == nil {
		t.Error("one file of three")
	}
}

// authority signs one certificate that is the server's and the client's.
type authority struct {
	pool      *x509.CertPool
	pair      tls.Certificate
	cert, key []byte
	ca        []byte
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	caKey, caCert, caDER := sign(t, nil, nil, true)
	key, cert, der := sign(t, caCert, caKey, false)
	encodedKey, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(caCert)
	return authority{
		pool: pool,
		pair: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: cert},
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encodedKey}),
		ca:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}),
	}
}

func sign(t *testing.T, parent *x509.Certificate, parentKey *ecdsa.PrivateKey, isCA bool) (*ecdsa.PrivateKey, *x509.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IsCA: isCA, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return key, cert, der
}

func (a authority) write(t *testing.T, paths [3]string) {
	t.Helper()
	for i, content := range [][]byte{a.cert, a.key, a.ca} {
		if err := os.WriteFile(paths[i], content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (a authority) client() *tls.Config {
	return &tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{a.pair}}
}
