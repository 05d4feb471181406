package gcx

import (
	"runtime"
	"strings"
	"testing"
)

// layouts are the first 8, 16, 24 ... SMs of device 0.
func layouts(t *testing.T, count uint32) []Resource {
	t.Helper()
	all, err := DeviceResource(0, SM)
	if err != nil {
		t.Fatal(err)
	}
	var found []Resource
	for i := uint32(1); i <= count; i++ {
		groups, _, err := all.Split(Counts(8*i), 0)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, groups[0])
	}
	return found
}

// nothingKept begins with no kept context, and puts the limits back at the end.
func nothingKept(t *testing.T) {
	t.Helper()
	before := kept(t)
	if _, err := TrimCache(0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := SetCacheLimit(before.Limit); err != nil {
			t.Error(err)
		}
	})
}

func kept(t *testing.T) CacheStats {
	t.Helper()
	stats, err := Cache()
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

func TestContextsAheadOfTime(t *testing.T) {
	nothingKept(t)
	all := layouts(t, 6)
	before := kept(t)
	var told []uint32
	progress := func(done, count uint32) {
		// It may call gcx.
		if stats, err := Cache(); err != nil || stats.Kept != done || count != 6 {
			t.Errorf("%d of %d told with %d kept, %v", done, count, stats.Kept, err)
		}
		told = append(told, done)
	}
	if err := PrepareContexts(PrepareParams{Progress: progress}, all...); err != nil {
		t.Fatal(err)
	}
	after := kept(t)
	if len(told) != 6 || after.Prepared != before.Prepared+6 {
		t.Errorf("told %v, %+v", told, after)
	}
	context, err := NewContext(0, all[3])
	if err != nil {
		t.Fatal(err)
	}
	info, err := context.Info()
	if err != nil || info.SMCount == 0 {
		t.Errorf("%+v, %v", info, err)
	}
	if live, err := Contexts(0); err != nil || len(live) != 1 || live[0].ID != info.ID {
		t.Errorf("%+v, %v", live, err)
	}
	if err := context.Close(); err != nil {
		t.Error(err)
	}
	if stats := kept(t); stats.Misses != after.Misses || stats.Hits != after.Hits+1 {
		t.Errorf("it was made anew: %+v", stats)
	}
	if err := SetCacheLimit(3); err != nil {
		t.Fatal(err)
	}
	if stats := kept(t); stats.Kept != 3 {
		t.Errorf("%+v", stats)
	}
	refused(t, "more than the limit keeps", PrepareContexts(PrepareParams{}, all...), InvalidValue)
	trimmed, err := TrimCache(1)
	if err != nil || trimmed.Contexts < 1 || kept(t).Kept != 1 {
		t.Errorf("%+v, %v", trimmed, err)
	}
}

func TestTheRestIsGivenUp(t *testing.T) {
	nothingKept(t)
	all := layouts(t, 6)
	before := kept(t).Misses
	cancel, err := NewCancel()
	if err != nil {
		t.Fatal(err)
	}
	given := PrepareContexts(PrepareParams{Cancel: cancel, Progress: func(done, _ uint32) {
		if done == 2 {
			_ = cancel.Signal()
		}
	}}, all...)
	refused(t, "the rest", given, NotPermitted)
	if !strings.Contains(given.Error(), "2 of 6") || kept(t).Misses != before+2 {
		t.Error(given)
	}
	if err := cancel.Close(); err != nil {
		t.Error(err)
	}
	refused(t, "a closed cancel", PrepareContexts(PrepareParams{Cancel: cancel}, all...), InvalidHandle)
	refused(t, "nothing", PrepareContexts(PrepareParams{}), InvalidValue)
	refused(t, "unknown flags", PrepareContexts(PrepareParams{Flags: 0x80}, all...), InvalidValue)
}

// What progress panics with comes out of the call, and unwinds none of C's frames.
func TestProgressPanics(t *testing.T) {
	nothingKept(t)
	all := layouts(t, 6)
	prepare := func(cancel Cancel, end func()) (value interface{}, told int) {
		defer func() { value = recover() }()
		err := PrepareContexts(PrepareParams{Cancel: cancel, Progress: func(done, _ uint32) {
			if told++; done == 2 {
				end()
			}
		}}, all...)
		t.Error("it returned", err)
		return
	}
	before := kept(t).Misses
	value, told := prepare(Cancel{}, func() { panic("of its own") })
	if value != "of its own" || told != 2 || kept(t).Misses != before+2 {
		t.Errorf("%v, told %d times, %d made", value, told, kept(t).Misses-before)
	}
	cancel, err := NewCancel()
	if err != nil {
		t.Fatal(err)
	}
	if value, told = prepare(cancel, func() { panic(7) }); value != 7 || told != 2 || kept(t).Misses != before+6 {
		t.Errorf("%v, told %d times, %d made", value, told, kept(t).Misses-before)
	}
	// It wasn't signalled.
	if err := PrepareContexts(PrepareParams{Cancel: cancel}, all...); err != nil {
		t.Error(err)
	}
	if err := cancel.Close(); err != nil {
		t.Error(err)
	}
	if _, told := prepare(Cancel{}, runtime.Goexit); told != 2 {
		t.Errorf("told %d times", told)
	}
	if len(progresses.calls) != 0 {
		t.Errorf("%d calls are kept", len(progresses.calls))
	}
}

func TestWhatOfAKernelFits(t *testing.T) {
	function := newProgram(t).kernel
	context, stream := opened(t, 0)
	fit, err := stream.KernelFit(function, KernelFitParams{BlockThreads: 256})
	if err != nil || fit.SMCount != 24 || fit.BlocksPerSM != 8 || fit.MaxBlocks != 192 || fit.MaxClusterBlocks != 8 {
		t.Errorf("%+v, %v", fit, err)
	}
	fit, err = stream.KernelFit(function, KernelFitParams{BlockThreads: 256, ClusterBlocks: 4})
	if err != nil || fit.MaxClusters == 0 || fit.MaxBlocks != 4*fit.MaxClusters {
		t.Errorf("%+v, %v", fit, err)
	}
	_, threads := stream.KernelFit(function, KernelFitParams{BlockThreads: 1025})
	refused(t, "1025 threads", threads, InvalidValue)
	_, none := stream.KernelFit(0, KernelFitParams{BlockThreads: 256})
	refused(t, "no kernel", none, InvalidValue)
	for _, err := range []error{stream.Close(), context.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
	_, closed := stream.KernelFit(function, KernelFitParams{BlockThreads: 256})
	refused(t, "a closed stream", closed, InvalidHandle)
}
