package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Still the vendor, not the adapter: with a file its speakers outlive this process, as those of a real
// vendor do. So an adapter that is killed between commit and reply finds them when it comes back.

type fileEntry struct {
	Place  place
	Record *record
}

// load reads the file; one that is not there yet is an empty vendor.
func (v *vendor) load() error {
	if v.options.File == "" {
		return nil
	}
	content, err := os.ReadFile(v.options.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the vendor's file: %w", err)
	}
	var entries []fileEntry
	if err := json.Unmarshal(content, &entries); err != nil {
		return fmt.Errorf("cannot read the vendor's file %s: %w", v.options.File, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, entry := range entries {
		if v.records[entry.Place] == nil {
			v.records[entry.Place] = map[string]*record{}
		}
		v.records[entry.Place][entry.Record.Now.ID] = entry.Record
		v.count++
	}
	return nil
}

// save writes after each change, in one piece: a process that is killed leaves the old file or the new.
func (v *vendor) save(call string) error {
	if v.options.File == "" || call == "get" || call == "list" {
		return nil
	}
	entries := []fileEntry{}
	for at, records := range v.records {
		for _, one := range records {
			entries = append(entries, fileEntry{at, one})
		}
	}
	content, err := json.Marshal(entries)
	if err != nil {
		return fmt.Errorf("cannot write the vendor's file: %w", err)
	}
	draft := v.options.File + ".new"
	if err := os.WriteFile(draft, content, 0o600); err != nil {
		return fmt.Errorf("cannot write the vendor's file: %w", err)
	}
	return os.Rename(draft, v.options.File)
}
