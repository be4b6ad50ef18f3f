package main

import (
	"os"
	"path/filepath"
	"testing"

	pb "digital-human-provider/examples/adapter-go/gen/dhp/provider/v1"
)

func TestAFreshAdapterFindsWhatTheVendorHasKept(t *testing.T) {
	kept := vendorOptions{File: filepath.Join(t.TempDir(), "parrot.json")}
	made := newBench(t, kept).mustEnsure(t, pb.Change_CHANGE_CREATED)
	restarted := func() *bench {
		b := newBench(t, kept)
		if err := b.vendor.load(); err != nil {
			t.Fatal(err)
		}
		return b
	}
	again := restarted()
	if found := again.mustEnsure(t, pb.Change_CHANGE_NONE); found.GetProviderId() != made.GetProviderId() {
		t.Errorf("%s, want %s", found.GetProviderId(), made.GetProviderId())
	}
	if _, err := again.client.Delete(callContext(t), deleteRequest()); err != nil {
		t.Fatal(err)
	}
	restarted().mustEnsure(t, pb.Change_CHANGE_CREATED)
}

func TestAFileThatIsNoVendorsIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "parrot.json")
	if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := newVendor(vendorOptions{File: path}).load(); err == nil {
		t.Error("accepted")
	}
}
