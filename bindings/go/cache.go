package gcx

import (
	"sync"

	"example.org/gcx/bindings/go/generated/raw"
	"github.com/ebitengine/purego"
)

// Cache returns what gcx keeps, since the driver was opened.
func Cache() (raw.CacheStats, error) { return filled(Raw.CacheGetStats) }

// SetCacheLimit bounds how many green contexts without handle or stream are kept on each device.
func SetCacheLimit(contexts uint32) error {
	return check(func() Result { return Raw.CacheSetLimit(contexts) })
}

// TrimCache destroys the kept contexts beyond a number now, the longest unused first.
func TrimCache(contexts uint32) (raw.CacheTrimmed, error) {
	return filled(func(trimmed *raw.CacheTrimmed) Result { return Raw.CacheTrim(contexts, trimmed) })
}

// PrepareParams says how to make contexts ahead of time.
type PrepareParams struct {
	Flags  uint32 // 0 or raw.PrepareForLeases
	Cancel Cancel // aborts the rest
	// Progress is called after each resource, in a goroutine that is waited for; it may call gcx.
	// If it panics, PrepareContexts does, and the rest is aborted; a Cancel that was given isn't
	// signalled for that: with one the rest is made first, without Progress.
	Progress func(done, count uint32)
}

// PrepareContexts makes and keeps the contexts of SM resources, one for each. It takes milliseconds
// for each that isn't there yet: call it before the work starts, or from a goroutine of its own.
func PrepareContexts(params PrepareParams, resources ...Resource) error {
	c := sized(&raw.PrepareParams{Flags: params.Flags, Cancel: raw.Cancel(params.Cancel)})
	var told *progress
	if params.Progress != nil {
		told = &progress{tell: params.Progress}
		if params.Cancel == 0 {
			own, err := NewCancel()
			if err != nil {
				return err
			}
			defer own.Close()
			told.own, c.Cancel = own, raw.Cancel(own)
		}
		c.UserData = progresses.add(told)
		defer progresses.remove(c.UserData)
		c.Progress = progressCallback()
	}
	err := check(func() Result {
		return Raw.CachePrepare(first(resources).raw(), length(resources), c)
	})
	if told != nil && told.panicked {
		panic(told.value)
	}
	return err
}

// progress is one call that tells how far it is.
type progress struct {
	tell     func(done, count uint32)
	own      Cancel
	panicked bool
	value    interface{}
}

// call runs in C's callback, whose frames neither a panic nor runtime.Goexit may unwind.
func (told *progress) call(done, count uint32) {
	if told.panicked {
		return
	}
	ended := make(chan struct{})
	go func() {
		returned := false
		defer close(ended)
		defer func() {
			if !returned {
				told.panicked, told.value = true, recover()
			}
		}()
		told.tell(done, count)
		returned = true
	}()
	<-ended
	if told.panicked && told.own != 0 {
		_ = told.own.Signal()
	}
}

// A callback is never freed, so there is one, which finds the call that it is for by a number.
var (
	progressOnce    sync.Once
	progressAddress uintptr
	progresses      = registry{calls: map[uintptr]*progress{}}
)

func progressCallback() uintptr {
	progressOnce.Do(func() {
		progressAddress = purego.NewCallback(func(done, count uint32, userData uintptr) {
			progresses.get(userData).call(done, count)
		})
	})
	return progressAddress
}

type registry struct {
	sync.Mutex
	last  uintptr
	calls map[uintptr]*progress
}

func (of *registry) add(told *progress) uintptr {
	of.Lock()
	defer of.Unlock()
	of.last++
	of.calls[of.last] = told
	return of.last
}

func (of *registry) get(number uintptr) *progress {
	of.Lock()
	defer of.Unlock()
	return of.calls[number]
}

func (of *registry) remove(number uintptr) {
	of.Lock()
	defer of.Unlock()
	delete(of.calls, number)
}
