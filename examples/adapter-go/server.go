package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // callers may compress
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	pb "digital-human-provider/examples/adapter-go/gen/dhp/provider/v1"
)

const (
	messageBytes     = 4 << 20
	callsMax         = 2000
	streamsPerConn   = 1000
	closeTimeout     = 500 * time.Millisecond
	pushbackTrailer  = "grpc-retry-pushback-ms"
	handshakeTimeout = 10 * time.Second
)

// server serves ProviderAPI with health and reflection beside it, and knows which calls are in flight.
type server struct {
	adapter *adapter
	grpc    *grpc.Server
	health  *health.Server

	mu         sync.Mutex
	isDraining bool
	calls      int
	quiet      chan struct{} // closed when draining and the last call has been answered
}

// newServer serves plaintext where tlsConfig is nil.
func newServer(a *adapter, tlsConfig *tls.Config) *server {
	s := &server{adapter: a, health: health.NewServer(), quiet: make(chan struct{})}
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(messageBytes),
		grpc.MaxSendMsgSize(messageBytes),
		grpc.MaxConcurrentStreams(streamsPerConn),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
		// The controller asks each 10 s whether the connection lives, also without calls.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(s.unary),
		grpc.StreamInterceptor(s.stream),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return errUnknownMethod }),
	}
	if tlsConfig != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(tlsConfig)))
	}
	s.grpc = grpc.NewServer(options...)
	pb.RegisterProviderAPIServer(s.grpc, a)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	s.health.SetServingStatus(pb.ProviderAPI_ServiceDesc.ServiceName, healthpb.HealthCheckResponse_SERVING)
	reflection.Register(s.grpc)
	return s
}

func (s *server) serve(listener net.Listener) error { return s.grpc.Serve(listener) }

// drain: health says NOT_SERVING, new calls are refused, health streams end. It returns when the calls
// and the changes in flight are done, or false when that takes longer than limit. We keep listening
// meanwhile: a refusal of ours is sure to have changed nothing, a refused connection says nothing.
func (s *server) drain(limit time.Duration) bool {
	s.health.Shutdown()
	s.mu.Lock()
	s.isDraining = true
	if s.calls == 0 {
		close(s.quiet)
	}
	s.mu.Unlock()
	close(s.adapter.draining)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	select {
	case <-s.quiet:
		return s.adapter.flights.idle(ctx)
	case <-ctx.Done():
		return false
	}
}

// close lets the last answers leave, then drops all connections.
func (s *server) close() {
	timer := time.AfterFunc(closeTimeout, s.grpc.Stop)
	defer timer.Stop()
	s.grpc.GracefulStop()
}

func (s *server) unary(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	if _, isOurs := info.Server.(*adapter); !isOurs {
		return handler(ctx, request)
	}
	var response any
	err := s.answer(ctx, info.FullMethod, func() (err error) {
		if _, has := ctx.Deadline(); !has && info.FullMethod != pb.ProviderAPI_GetProviderInfo_FullMethodName {
			return noDeadline(info.FullMethod)
		}
		response, err = handler(ctx, request)
		return err
	})
	if isOwnAnswer(err) {
		// Not the transport's to retry: the answer is the adapter's own.
		_ = grpc.SetTrailer(ctx, metadata.Pairs(pushbackTrailer, "-1")) // fails only after the answer
	}
	if err != nil {
		return nil, err
	}
	return response, nil
}

func (s *server) stream(
	srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler,
) error {
	if _, isOurs := srv.(*adapter); !isOurs {
		return handler(srv, stream)
	}
	err := s.answer(stream.Context(), info.FullMethod, func() error { return handler(srv, stream) })
	if isOwnAnswer(err) {
		stream.SetTrailer(metadata.Pairs(pushbackTrailer, "-1"))
	}
	return err
}

// answer runs work as one call in flight and says in the log how it ended.
func (s *server) answer(ctx context.Context, method string, work func() error) error {
	begin := time.Now()
	err := s.admit()
	if err == nil {
		err = func() (err error) {
			defer s.leave()
			defer catchPanic(method, &err)
			return work()
		}()
	}
	err = errorToSend(ctx, method, err)
	fields := []any{"method", method, "code", status.Code(err).String(), "took", time.Since(begin).String()}
	var refused *problem
	if errors.As(err, &refused) {
		fields = append(fields, "reason", reasonName(refused.reason), "error", refused.message)
	}
	slog.Info("call answered", fields...)
	return err
}

// admit refuses, having touched nothing.
func (s *server) admit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isDraining {
		return shuttingDown("refused")
	}
	if s.calls >= callsMax {
		busy := newProblem(pb.ErrorReason_ERROR_REASON_BUSY, "cannot answer: too many calls in flight")
		busy.retryAfter = busyRetry
		return busy
	}
	s.calls++
	return nil
}

func (s *server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls--
	if s.isDraining && s.calls == 0 {
		close(s.quiet)
	}
}

func catchPanic(method string, err *error) {
	if bug := recover(); bug != nil {
		slog.Error("call panicked", "method", method, "panic", bug, "stack", string(debug.Stack()))
		*err = fmt.Errorf("panic: %v", bug)
	}
}

// errorToSend: a bug tells nothing of itself, for it may hold anything.
func errorToSend(ctx context.Context, method string, err error) error {
	var known *problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	}
	slog.Error("call failed on a bug", "method", method, "error", err)
	return status.Error(codes.Internal, "the adapter failed on a bug; its log says more")
}

// isOwnAnswer: only a stopping replica leaves it to the transport to try another.
func isOwnAnswer(err error) bool {
	var known *problem
	return errors.As(err, &known) && known.reason != pb.ErrorReason_ERROR_REASON_SHUTTING_DOWN
}

func noDeadline(method string) *problem {
	refused := newProblem(pb.ErrorReason_ERROR_REASON_INVALID_FIELD, "cannot answer %s: it has no deadline", method)
	refused.fields = []violation{{"grpc-timeout", "every call carries a deadline"}}
	return refused
}

// shuttingDown: a call that is refused has applied nothing; one that is cut off must not claim so.
func shuttingDown(what string) *problem {
	stopping := newProblem(pb.ErrorReason_ERROR_REASON_SHUTTING_DOWN, "call %s: the adapter is stopping", what)
	if what != "refused" {
		stopping.outcome = pb.Outcome_OUTCOME_UNKNOWN
	}
	return stopping
}

var errUnknownMethod = newProblem(pb.ErrorReason_ERROR_REASON_UNSUPPORTED, "this adapter does not serve that method")
