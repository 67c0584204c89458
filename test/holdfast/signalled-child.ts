// A process with a worker, for tests of what a signal does to it. Its argument says how the application listens itself.

import { createHoldfast, workflow } from '../../src/index.ts'

const [how] = process.argv.slice(2)
const say = (text: string): void => void process.stdout.write(`${text}\n`)

const slow = workflow('slow', (ctx) =>
  ctx.step('work', async () => {
    say('working')
    await new Promise((resolve) => setTimeout(resolve, 300))
    say('worked')
  }),
)

// The application goes on for a while after the signal, as one does that has connections to end.
const leave = (): void => {
  say('heard')
  setTimeout(() => {
    say('leaving')
    process.exit(7)
  }, 1_500)
}
if (how === 'once') process.once('SIGTERM', leave)
if (how === 'on') process.on('SIGTERM', leave)

const holdfast = await createHoldfast({ store: 'memory:', workflows: [slow] })
await holdfast.work()
if (how === 'later') process.once('SIGTERM', leave)
await holdfast.start(slow)
