// The sink of effects, in a process of its own that nobody strikes: stands for the outside world, to which a step does what
// cannot be taken back. One line of JSON asks, one answers; nothing is answered before it is on the disk. What arrives while
// the disk is busy goes to it together. All times are this process's, taken on arrival: one clock for all workers.

import { open } from 'node:fs/promises'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import type { SinkLine } from './sink-file.ts'
import { onLines, type SinkRequest } from './sink.ts'

process.on('disconnect', () => process.exit())

const file = await open(process.argv[2] ?? '', 'a')
let marks = 0
let lines: string[] = []
let answers: (() => void)[] = []
let isWriting = false

function take(request: SinkRequest): string {
  const at = Date.now()
  const mark = request.event === 'begin' ? `e${(marks += 1)}` : request.mark
  const line: SinkLine = request.event === 'begin' ? { ...request, mark, at } : { event: 'end', mark, at }
  lines.push(`${JSON.stringify(line)}\n`)
  return mark
}

async function write(): Promise<void> {
  if (isWriting) return
  isWriting = true
  while (lines.length > 0) {
    const [text, owed] = [lines.join(''), answers]
    lines = []
    answers = []
    await file.appendFile(text)
    await file.datasync()
    for (const answer of owed) answer()
  }
  isWriting = false
}

function serve(socket: Socket): void {
  onLines(socket, (text) => {
    const mark = take(JSON.parse(text) as SinkRequest)
    // Who is gone by then is not answered; what he did stays written.
    answers.push(() => socket.write(`${JSON.stringify({ mark })}\n`))
    void write()
  })
}

const server = createServer(serve)
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
