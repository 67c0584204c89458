// How a message that the body sends comes into the journal: the entry is the message, and the store delivers it with the commit
// that appends it (`core/model/message.ts`). The call settles as soon as its entry is appended, in the order of the entries like
// every other call; a replay finds the entry and sends nothing again. A message that cannot be prepared rejects the call, and
// nothing of it is recorded.

import type { Draft } from '../../core/model/entry.ts'
import { leaveBody } from '../../core/runtime/ports.ts'
import { SendCall } from '../frame/body-call.ts'
import type { FrameState } from '../frame/frame-state.ts'
import type { Waits } from '../waits/waits.ts'

/** The entry of a message, once it is known to whom it goes and what it says: its place is the next one of the journal. */
export type Content = (state: FrameState, name: string) => Draft

export interface NewSend {
  /** The identity of the call. */
  readonly name: string
  readonly place: string | null
  /** Checks the message, and finds out to whom it goes. Throws, or rejects with, the error that the body is to catch. */
  readonly prepare: (state: FrameState) => Content | Promise<Content>
  /** The message was refused, and nothing of it is recorded. Called before the body learns it. */
  readonly refused?: () => void
}

/** Sends a message of the body, once. */
export function send(waits: Waits, sent: NewSend): Promise<void> {
  const call = new SendCall(sent.name)
  call.place = sent.place
  leaveBody(waits.state.host.ports, () => begin(waits, call, sent))
  return call.promise as Promise<void>
}

function begin(waits: Waits, call: SendCall, { prepare, refused }: NewSend): void {
  const { state, settler } = waits
  settler.enter(call)
  if (state.history.has('send', call.name) || !state.isWriting) return
  const refuse = (error: unknown): void => {
    refused?.()
    settler.markReady(call, { failed: true, value: error, seq: null })
  }
  const record = (content: Content): void => {
    try {
      state.writer.append(content(state, call.name))
      settler.markReady(call, { failed: false, value: undefined, seq: state.writer.seq })
    } catch (error) {
      refuse(error)
    }
  }
  try {
    const content = prepare(state)
    if (!(content instanceof Promise)) return record(content)
    // Until it is recorded, nothing but the memory of this frame knows of it.
    waits.prepare()
    void content.then(
      (known) => waits.prepared(() => record(known)),
      (error: unknown) => waits.prepared(() => refuse(error)),
    )
  } catch (error) {
    refuse(error)
  }
}
