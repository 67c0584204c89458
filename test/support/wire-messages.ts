// As much of Postgres's protocol as it takes to see, from outside, which statements a client asks for, and to which of its
// requests an answer belongs. Every simple query and every Sync is answered by exactly one ReadyForQuery: what lies
// between two of those is one request, here called a turn. The start of a session is the first.

/** Cuts a stream into messages. A client's first one has no letter for its type. */
export class Messages {
  private rest: Buffer = Buffer.alloc(0)
  private isTyped: boolean

  constructor(side: 'client' | 'server') {
    this.isTyped = side === 'server'
  }

  *push(chunk: Buffer): Generator<Message> {
    this.rest = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk])
    for (;;) {
      const head = this.isTyped ? 1 : 0
      if (this.rest.length < head + 4) return
      const length = head + this.rest.readUInt32BE(head)
      if (this.rest.length < length) return
      const bytes = this.rest.subarray(0, length)
      this.rest = this.rest.subarray(length)
      const body = bytes.subarray(head + 4)
      const type = this.isTyped ? String.fromCharCode(bytes[0] ?? 0) : opening(body)
      // A client that asked for encryption, and is refused, begins anew.
      if (type === 'startup') this.isTyped = true
      yield { type, bytes, body }
    }
  }
}

export interface Message {
  /** The protocol's letter; or what a message without one is. */
  readonly type: string
  readonly bytes: Buffer
  readonly body: Buffer
}

function opening(body: Buffer): 'startup' | 'encrypt' | 'cancel' {
  const code = body.readUInt32BE(0)
  if (code === 80_877_103 || code === 80_877_104) return 'encrypt'
  return code === 80_877_102 ? 'cancel' : 'startup'
}

/** The start of a session that asks for a statement timeout, asking for this one instead. A shorter one leaves blanks. */
export function withStatementTimeout(startup: Buffer, ms: number): Buffer {
  const text = startup.toString('latin1')
  const asked = text.replace(/statement_timeout=\d+/, (found) => `statement_timeout=${ms}`.padEnd(found.length))
  if (asked.length !== text.length)
    throw new Error(`A statement timeout of ${ms} ms is longer than what was asked for.`)
  return Buffer.from(asked, 'latin1')
}

/** A statement whose execution is asked for. */
export interface Statement {
  readonly text: string
  /** By itself or as part of a transaction; or it ends one for good. */
  readonly role: 'autocommit' | 'within' | 'commit'
  /** Whether it changes data. */
  readonly writes: boolean
  /** Counted from 0, the start of the session. */
  readonly turn: number
}

/** Listens to one client. Whether it is inside a transaction is known by what it asks, so that a pipeline is understood. */
export class Listener {
  private readonly prepared = new Map<string, string>()
  private readonly portals = new Map<string, string>()
  private isInside = false
  private turn = 0

  /** The statements that this message asks to execute. */
  hear({ type, body }: Message): readonly Statement[] {
    switch (type) {
      case 'P': {
        const name = textAt(body, 0)
        this.prepared.set(name, textAt(body, Buffer.byteLength(name) + 1))
        return []
      }
      case 'B': {
        const portal = textAt(body, 0)
        this.portals.set(portal, this.prepared.get(textAt(body, Buffer.byteLength(portal) + 1)) ?? '')
        return []
      }
      case 'E':
        return [this.execute(this.portals.get(textAt(body, 0)) ?? '', this.turn + 1)]
      case 'S':
        this.turn += 1
        return []
      case 'Q': {
        this.turn += 1
        const texts = textAt(body, 0)
          .split(';')
          .map((text) => text.trim())
        return texts.filter((text) => text !== '').map((text) => this.execute(text, this.turn))
      }
      default:
        return []
    }
  }

  private execute(text: string, turn: number): Statement {
    const [word = ''] = /[a-z]+/i.exec(text.replace(comments, '')) ?? []
    const isInside = this.isInside
    if (/^(?:begin|start)$/i.test(word)) this.isInside = true
    if (/^(?:commit|end|rollback|abort)$/i.test(word) && !/\bto\b/i.test(text)) this.isInside = false
    const ends = isInside && /^(?:commit|end)$/i.test(word)
    return { text, role: ends ? 'commit' : this.isInside ? 'within' : 'autocommit', writes: writing.test(text), turn }
  }
}

/** Texts end with a zero. What follows may be megabytes of values, and is not looked at. */
function textAt(body: Buffer, start: number): string {
  return body.toString('utf8', start, body.indexOf(0, start))
}

const comments = /^(?:\s|--[^\n]*\n|\/\*[\s\S]*?\*\/)*/
const writing = /\b(?:insert\s+into|update|delete\s+from|merge\s+into|copy|create|alter|drop|truncate)\b/i
