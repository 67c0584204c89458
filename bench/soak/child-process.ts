// How the parent of a soak and its children talk: the parent sends a task, then asks as often as it likes, and at last lets
// the child close. Either may also send the other something unasked. Nothing stands on the command line: an address may hold a password.
//
// Ctrl-C reaches the children of a terminal, too. They ignore it: the parent closes them in good order. If it dies, they end.

import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

type ToChild =
  | { readonly kind: 'task'; readonly task: unknown }
  | { readonly kind: 'ask' }
  | { readonly kind: 'news'; readonly news: unknown }
  | { readonly kind: 'close' }

type ToParent =
  | { readonly kind: 'ready' }
  | { readonly kind: 'answer'; readonly answer: unknown }
  | { readonly kind: 'news'; readonly news: unknown }

/** What a child does with its task. */
interface Service {
  answer(): Promise<unknown>
  hear?(news: unknown): void
  close(): Promise<void>
}

interface Parent {
  report(news: unknown): void
}

/** The whole life of a child. */
export async function serveParent(begin: (task: unknown, parent: Parent) => Promise<Service>): Promise<void> {
  process.on('SIGINT', () => undefined)
  process.once('disconnect', () => process.exit())
  const send = (message: ToParent): void => void process.send?.(message)
  const [first] = (await once(process, 'message')) as [ToChild]
  if (first.kind !== 'task') throw new Error(`A child was sent "${first.kind}" before its task.`)
  const service = await begin(first.task, { report: (news) => send({ kind: 'news', news }) })
  process.on('message', (message: ToChild) => {
    if (message.kind === 'ask') void service.answer().then((answer) => send({ kind: 'answer', answer }))
    else if (message.kind === 'news') service.hear?.(message.news)
    else void service.close().then(() => process.disconnect())
  })
  send({ kind: 'ready' })
}

/** Starts the program of that name, lets `use` have it, and closes it whatever happens. */
export async function withChild<Answer, News, Result>(
  name: string,
  task: unknown,
  use: (child: Child<Answer, News>) => Promise<Result>,
): Promise<Result> {
  const child = await Child.start<Answer, News>(name, task)
  try {
    return await use(child)
  } finally {
    await child.close()
  }
}

/** A child as its parent sees it. */
export class Child<Answer, News> {
  onNews: (news: News) => void = () => undefined
  /** Settles when it has ended though nobody asked for it, with words for why. */
  readonly died: Promise<string>
  private readonly name: string
  private readonly process: ChildProcess
  private readonly exited: Promise<unknown>
  private waiting: ((answer: Answer) => void)[] = []
  private isClosing = false

  /** Starts the program of that name, which lies beside this file. */
  static async start<Answer, News>(name: string, task: unknown): Promise<Child<Answer, News>> {
    const program = new URL(`${name}-child${extname(import.meta.url)}`, import.meta.url)
    const child = new Child<Answer, News>(name, fork(fileURLToPath(program)))
    child.send({ kind: 'task', task })
    const died = child.died.then((why) => Promise.reject(new Error(why)))
    await Promise.race([new Promise<void>((resolve) => (child.onReady = resolve)), died])
    return child
  }

  private onReady: () => void = () => undefined

  private constructor(name: string, process: ChildProcess) {
    this.name = name
    this.process = process
    this.exited = once(process, 'exit')
    this.died = new Promise((resolve) => {
      process.once('exit', (code, signal) => {
        if (!this.isClosing) resolve(`The ${this.name} ended with ${signal ?? `exit code ${code}`}; see above.`)
      })
    })
    process.on('message', (message: ToParent) => this.hear(message))
  }

  /** Its answer, which never comes if it dies. */
  ask(): Promise<Answer> {
    return new Promise((resolve) => {
      this.waiting.push(resolve)
      this.send({ kind: 'ask' })
    })
  }

  pass(news: unknown): void {
    this.send({ kind: 'news', news })
  }

  /** Settles when the process has ended. */
  async close(): Promise<void> {
    if (!this.isClosing) this.send({ kind: 'close' })
    this.isClosing = true
    if (this.process.exitCode === null && this.process.signalCode === null) await this.exited
  }

  /** Ends it at once. */
  kill(): void {
    this.isClosing = true
    this.process.kill('SIGKILL')
  }

  /** A child that has died gets nothing: `died` says why it did. */
  private send(message: ToChild): void {
    if (this.process.connected) this.process.send(message)
  }

  private hear(message: ToParent): void {
    if (message.kind === 'ready') this.onReady()
    else if (message.kind === 'news') this.onNews(message.news as News)
    else this.waiting.shift()?.(message.answer as Answer)
  }
}
