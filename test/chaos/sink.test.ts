// The sink of effects acknowledges only what is written down, and says who did what, in the order of arrival.

import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { childProgram } from '../support/child-program.ts'
import { SinkConnection, startSink, type SinkProcess } from './sink.ts'
import { SinkFile } from './sink-file.ts'

let folder: string
let path: string
let sink: SinkProcess
const connections: SinkConnection[] = []

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-sink-'))
  path = join(folder, 'effects')
  sink = await startSink(await childProgram('test/chaos/sink-child.ts'), path)
})
afterEach(async () => {
  for (const connection of connections.splice(0)) connection.close()
  await sink.stop()
  rmSync(folder, { recursive: true })
})

async function open(worker: () => string): Promise<SinkConnection> {
  const connection = await SinkConnection.open(sink.url, worker)
  connections.push(connection)
  return connection
}

const doing = (step: string) => ({ run: 'r', step, attempt: 1, key: `r:${step}` })

it('says who began what, and what ended', async () => {
  let worker = 'a/1'
  const connection = await open(() => worker)
  const first = await connection.begin(doing('first'))
  worker = 'a/2'
  const second = await connection.begin({ ...doing('second'), attempt: 2 })
  await connection.end(first)
  const effects = new SinkFile(path).effects()
  expect(effects).toEqual([
    {
      worker: 'a/1',
      ...doing('first'),
      mark: first,
      began: expect.any(Number) as number,
      ended: expect.any(Number) as number,
    },
    { worker: 'a/2', ...doing('second'), attempt: 2, mark: second, began: expect.any(Number) as number, ended: null },
  ])
  expect(effects[0]?.ended).toBeGreaterThanOrEqual(effects[1]?.began ?? Infinity)
})

it('has written down whatever it has acknowledged, however many ask at once', async () => {
  const both = await Promise.all([open(() => 'a/1'), open(() => 'b/1')])
  const acknowledged = await Promise.all(
    Array.from({ length: 500 }, async (_, index) => {
      const mark = await both[index % 2]!.begin(doing(`s${index}`))
      // At this very moment, not some time later.
      const isThere = readFileSync(path, 'utf8').includes(`"mark":"${mark}"`)
      return { mark, step: `s${index}`, isThere }
    }),
  )
  expect(acknowledged.filter(({ isThere }) => !isThere)).toEqual([])
  expect(new Set(acknowledged.map(({ mark }) => mark)).size).toBe(500)
  const steps = new Map(new SinkFile(path).effects().map(({ mark, step }) => [mark, step]))
  // Each got the mark of what it asked for, and not its neighbour's.
  for (const { mark, step } of acknowledged) expect(steps.get(mark)).toBe(step)
})

it('is gone for those who still wait, and for those who come later', async () => {
  const connection = await open(() => 'a/1')
  await connection.begin(doing('first'))
  // Whether it still gets there is a matter of luck.
  const ended = connection.end('e1').catch(() => undefined)
  await sink.stop()
  await ended
  await expect(connection.begin(doing('second'))).rejects.toThrow('gone')
  expect(new SinkFile(path).effects()).toHaveLength(1)
})

it('is read on where reading stopped, and a line that is half written is left for later', async () => {
  const file = new SinkFile(path)
  const connection = await open(() => 'a/1')
  const mark = await connection.begin({ ...doing('first'), run: 'größer' })
  expect(file.effects().map(({ ended }) => ended)).toEqual([null])
  const [head, tail] = [`{"event":"end","mark":"${mark}"`, `,"at":7}\n`]
  appendFileSync(path, head)
  expect(file.effects().map(({ ended }) => ended)).toEqual([null])
  appendFileSync(path, tail)
  expect(file.effects().map(({ run, ended }) => [run, ended])).toEqual([['größer', 7]])
  appendFileSync(path, `{"event":"end","mark":"unknown","at":7}\n`)
  expect(() => file.effects()).toThrow('never began')
})
