package gcx

import (
	"runtime"
	"testing"

	"example.org/gcx/bindings/go/generated/raw"
)

// layouts returns the first 8, 16, 24 ... SMs of device 0, of which none has a cached context.
func layouts(t *testing.T, count uint32) []Resource {
	t.Helper()
	noError(t, second(TrimCache(0)))
	var found []Resource
	for i := uint32(1); i <= count; i++ {
		found = append(found, must[Resource](t)(part(0, 8*i)))
	}
	return found
}

func TestProgressIsReported(t *testing.T) {
	all := layouts(t, 6)
	var reported []uint32
	progress := func(done, count uint32) {
		// It may call gcx.
		if stats := must[raw.CacheStats](t)(Cache()); stats.Cached != done || count != 6 {
			t.Errorf("%d of %d with %d kept", done, count, stats.Cached)
		}
		reported = append(reported, done)
	}
	noError(t, PrepareContexts(PrepareParams{Progress: progress}, all...))
	if len(reported) != 6 {
		t.Error(reported)
	}
	refused(t, "nothing", PrepareContexts(PrepareParams{}), raw.ErrorInvalidValue)
}

// The panic continues in the caller, and unwinds none of C's frames.
func TestProgressPanics(t *testing.T) {
	all := layouts(t, 6)
	prepare := func(cancel Cancel, end func()) (value interface{}, calls int) {
		defer func() { value = recover() }()
		err := PrepareContexts(PrepareParams{Cancel: cancel, Progress: func(done, _ uint32) {
			if calls++; done == 2 {
				end()
			}
		}}, all...)
		t.Error("it returned", err)
		return
	}
	before := must[raw.CacheStats](t)(Cache()).Misses
	made := func() uint64 { return must[raw.CacheStats](t)(Cache()).Misses - before }
	if value, calls := prepare(0, func() { panic("intended") }); value != "intended" || calls != 2 || made() != 2 {
		t.Errorf("%v, %d calls, %d made", value, calls, made())
	}
	cancel := must[Cancel](t)(NewCancel())
	if value, calls := prepare(cancel, func() { panic(7) }); value != 7 || calls != 2 || made() != 6 {
		t.Errorf("%v, %d calls, %d made", value, calls, made())
	}
	noError(t, PrepareContexts(PrepareParams{Cancel: cancel}, all...), cancel.Close()) // it wasn't signalled
	if _, calls := prepare(0, runtime.Goexit); calls != 2 {
		t.Errorf("%d calls", calls)
	}
	progresses.Range(func(number, _ interface{}) bool {
		t.Errorf("call %v is kept", number)
		return true
	})
}
