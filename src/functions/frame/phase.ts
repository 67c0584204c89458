// Where a frame is in its life. Its parts request the next phase (`enterPhase`).
//
//   new       → live       `start`: the body is called with the input
//   new       → gathering  `start` of a run that is being cancelled or fails: its body is replayed, and begins nothing, so
//                          that it tells how its steps are undone
//   live      → parking    nothing but time or a message can move it on: a commit to `waiting` is on its way
//   parking   → parked     that commit was answered; the lease is gone
//   parking   → live       a message or a control request had arrived: look again
//   parked    → live       `resume`, under a new lease, with nothing having happened to the journal in between
//   live      → gathering  a cancellation, or an end of the time for it, before everything recorded was shown
//   live      → draining   the body returned or threw, a cancellation, an end of the time for it, code and journal disagree, a
//                          payload cannot be read, or the run begins anew: attempts under way are awaited and recorded (drain.ts)
//   gathering → draining   all undo functions are collected, or the body can go no further
//   draining  → unwinding  nothing is under way, and the run fails or is cancelled
//   draining  → leaving    nothing is under way, and the run leaves in another way
//   unwinding → leaving    everything is undone, or the result of a step cannot be read
//   gathering → leaving    a payload that the body has to see again cannot be read, or cannot be fetched for now
//   live      → leaving    there is a request to pause, and the run has come to a checkpoint
//   leaving   → gone       that commit was answered
//   leaving   → unwinding  it was refused: the run is being cancelled, or its time is over; → live if a pause was taken back
//   live, gathering, unwinding → gone   `giveBack`, and the run has come to a checkpoint: the lease still stands
//   any       → gone       the lease or the journal went elsewhere, or `abort`, or the body spoiled its parked frame
//
// A pause and a shutdown stop at the next checkpoint: nothing new is begun, but the body goes on seeing outcomes until it
// waits for a call that was not begun. A resumed run just begins it then.

export type Phase = 'new' | 'live' | 'gathering' | 'draining' | 'unwinding' | 'parking' | 'parked' | 'leaving' | 'gone'
