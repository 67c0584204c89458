// A replay must show the body what it saw before: over programs, orders of completion and every place at which a
// process may have died. A failing case prints the program, the choices and the seed.

import { fc } from '../support/properties.ts'
import { describe, expect, it } from 'vitest'
import type { Entry } from '../../src/core/model/entry.ts'
import { acts, brokenRules, drive, essence, isOutcome, live, type Event } from '../support/function-drive.ts'
import { Play, type Program, type Seen } from '../support/function-program.ts'
import { programs } from '../support/function-programs.ts'
import { FunctionRig, type Held } from '../support/function-rig.ts'

interface Performed {
  readonly rig: FunctionRig
  readonly play: Play
  readonly held: Held
  readonly journal: readonly Entry[]
  /** How long the journal was whenever the run had come to rest. */
  readonly rests: readonly number[]
}

interface PerformOptions {
  readonly how?: 'in memory' | 'replayed'
  readonly swallow?: boolean
  /** Let several attempts end in one burst. */
  readonly bursts?: boolean
}

/** REPLAY_RUNS=20 looks at twenty times as many programs. */
const runs = (usual: number): number => usual * Number(process.env['REPLAY_RUNS'] ?? 1)

const choices = fc.array(fc.nat(11), { minLength: 1, maxLength: 24 })

/** Runs a program live; the choices say which attempt ends next, or whether time passes. */
async function perform(program: Program, picks: readonly number[], options: PerformOptions = {}): Promise<Performed> {
  const rig = new FunctionRig({ seed: 7 })
  const play = new Play(rig, program, options)
  const held = await rig.start(play.definition)
  play.held = held
  await held.begin()
  let event = 0
  const rests: number[] = []
  await drive(
    rig,
    held,
    ({ gates, timeAt }): Event => {
      rests.push(rig.committedSeq(held.runId))
      const pick = picks[event++ % picks.length] ?? 0
      const at = pick % (gates.length + (timeAt === null ? 0 : 1))
      if (at === gates.length) return 'time'
      const rotated = [...gates.slice(at), ...gates.slice(0, at)]
      return { gates: options.bursts === true ? rotated.slice(0, 1 + (pick % 3)) : rotated.slice(0, 1) }
    },
    options.how,
  )
  return { rig, play, held, journal: await held.journal(), rests }
}

/** Takes a run over from a journal that ends somewhere, and goes on as that journal's first execution did. */
async function takeOver(
  program: Program,
  first: Performed,
  length: number,
): Promise<Performed & { atRest: readonly Seen[] }> {
  const rig = new FunctionRig({ seed: 8 })
  const play = new Play(rig, program)
  const held = await rig.adopt(play.definition, first.journal.slice(0, length))
  play.held = held
  await held.begin()
  const atRest = [...play.seen]
  let known: readonly Entry[] = []
  const refresh = async (): Promise<void> => void (known = await held.journal())
  await refresh()
  const quiet = rig.quiet.bind(rig)
  rig.quiet = async () => {
    await quiet()
    await refresh()
  }
  await drive(rig, held, ({ gates, timeAt }): Event => {
    // What the body makes by itself may lie elsewhere after a burst; outcomes and failed attempts come in order.
    const events = (entries: readonly Entry[]): readonly Entry[] => seenIn(entries, first).filter(isEvent)
    const next = events(first.journal)[events(known).length]
    const running = next !== undefined && next.name !== null && gates.includes(next.name)
    if (next !== undefined && timeAt !== null && timeAt <= next.at) return 'time'
    if (running) return { gates: burstFrom(next, first).filter((name) => gates.includes(name)) }
    // The body has ended, and waits for what it does not see any more.
    const isOver = next === undefined || timeAt === null
    return isOver && gates.length > 0 ? { gates: gates.slice(0, 1) } : 'time'
  })
  return { rig, play, held, journal: await held.journal(), rests: first.rests, atRest }
}

/** The steps whose attempts ended together with this one, itself included, in their order. */
function burstFrom({ seq }: Entry, { journal, rests }: Performed): readonly string[] {
  const end = rests.find((rest) => rest >= seq) ?? Infinity
  const ended = journal.filter(
    (entry) => entry.seq >= seq && entry.seq <= end && entry.kind !== 'woken' && isEvent(entry),
  )
  return [...new Set(ended.flatMap(({ name }) => (name === null ? [] : [name])))]
}

function isEvent(entry: Entry): boolean {
  return isOutcome(entry) || entry.kind === 'attempt-failed'
}

/** What was seen, without chance that the prefix had not recorded. */
function comparable(seen: readonly Seen[], recorded: number): readonly string[] {
  let chances = 0
  return seen.map(({ what, value, chance }) => `${what}: ${chance && ++chances > recorded ? '?' : value}`)
}

function recordedIn(entries: readonly Entry[]): number {
  return entries.filter(({ kind }) => kind === 'recorded').length
}

/**
 * What the body has seen, and what followed from that. When it throws, steps may be under way that it does not see any more:
 * what is recorded of them depends on how far they come, and a replay begins none of them anew. Where the entry that names a step
 * stands among those of its turn depends on whether a replay ended with that turn: what is called then begins after it.
 */
function seenIn(all: readonly Entry[], { play, journal }: Performed): readonly Entry[] {
  const entries = all.filter(({ kind }) => kind !== 'begun')
  if (journal.at(-1)?.kind === 'succeeded') return entries
  const shown = new Set(play.settled.map(({ call }) => call))
  const others = new Set<Entry['kind']>(['waiting', 'woken', 'recorded', 'patched', 'logged', 'progressed', 'issued'])
  const isSeen = ({ kind, name }: Entry): boolean => name === null || others.has(kind) || shown.has(name)
  // Whether there is anything to undo may depend on them, too.
  return entries.filter((entry) => isSeen(entry) && entry.kind !== 'failing')
}

function essences(entries: readonly Entry[], recorded = Infinity): readonly unknown[] {
  let at = 0
  return entries.map((entry) => essence(entry, entry.kind === 'recorded' ? at++ : 0, recorded))
}

function attemptsIn(entries: readonly Entry[]): readonly string[] {
  return entries
    .filter(
      (entry) => entry.kind === 'step-succeeded' || entry.kind === 'step-failed' || entry.kind === 'attempt-failed',
    )
    .filter(({ name }) => name !== null)
    .map((entry) => `${entry.name}@${(entry.meta as { readonly attempt: number }).attempt}`)
}

async function checkPrefix(
  program: Program,
  first: Performed,
  cut: number,
  how: 'entry by entry' | 'by outcomes' = 'entry by entry',
): Promise<void> {
  const length = notBetweenWakings(first.journal, cut)
  const prefix = first.journal.slice(0, length)
  const second = await takeOver(program, first, length)
  const recorded = recordedIn(prefix)
  const before = comparable(first.play.seen, recorded)
  expect(comparable(second.atRest, recorded)).toEqual(before.slice(0, second.atRest.length))
  expect(comparable(second.play.seen, recorded)).toEqual(before)
  const again = new Set(second.play.executed)
  expect(attemptsIn(prefix).filter((attempt) => again.has(attempt))).toEqual([])
  expect(second.play.broken).toEqual([])
  expect(second.play.resourcesHeld).toBe(0)
  const strict = how === 'entry by entry'
  // The rest of a burst may have been recorded before the end that its first made, and need not be awaited again.
  const [wasSeen, isSeen] = [seenIn(first.journal, first), seenIn(second.journal, first)]
  const unknownOutcome = begunIn(prefix)
  const isTheSame = (entry: Entry): boolean => (strict || isOutcome(entry)) && !isUndoOf(entry, unknownOutcome)
  const compared = isSeen.filter(isTheSame)
  const expected = strict ? wasSeen.filter(isTheSame) : wasSeen.filter(isTheSame).slice(0, compared.length)
  expect(essences(compared, recorded)).toEqual(essences(expected, recorded))
}

/** The steps of which a prefix says that they begin, and not what became of them: nobody knows whether they happened. */
function begunIn(prefix: readonly Entry[]): ReadonlySet<string | null> {
  const begun = new Set<string | null>()
  for (const { kind, name } of prefix) {
    if (kind === 'begun') begun.add(name)
    else if (answers.has(kind)) begun.delete(name)
  }
  return begun
}

const answers: ReadonlySet<Entry['kind']> = new Set(['step-succeeded', 'step-failed', 'attempt-failed', 'abandoned'])
const undoing: ReadonlySet<Entry['kind']> = new Set(['abandoned', 'undone', 'undo-failed', 'undo-attempt-failed'])

/** A step that may have happened when its process died is undone, also if its next attempt fails as that of the first execution. */
function isUndoOf({ kind, name }: Entry, steps: ReadonlySet<string | null>): boolean {
  return undoing.has(kind) && steps.has(name)
}

/** Waits that come due together are journalled together, and no process can have died between them. */
function notBetweenWakings(entries: readonly Entry[], cut: number): number {
  let length = cut
  while (entries[length]?.kind === 'woken' && entries[length]?.transition === null) length += 1
  return length
}

describe('replay', () => {
  it('PQ-E3 WC-E9 a replay of any prefix shows the body what it saw and ends as the first execution did', async () => {
    await fc.assert(
      fc.asyncProperty(programs(), choices, fc.nat(), async (program, picks, cut) => {
        const first = await perform(program, picks)
        const length = 1 + (cut % (first.journal.length - 1))
        await checkPrefix(program, first, length)
      }),
      { numRuns: runs(600) },
    )
  })

  it('every prefix of one journal can be taken over', async () => {
    await fc.assert(
      fc.asyncProperty(programs(), choices, async (program, picks) => {
        const first = await perform(program, picks)
        for (let length = 1; length < Math.min(first.journal.length, 25); length += 1) {
          await checkPrefix(program, first, length)
        }
      }),
      { numRuns: runs(100) },
    )
  })

  it('each order of completion replays as itself, also when attempts end in one burst', async () => {
    await fc.assert(
      // A wait that was made early and is due comes between the ends of a burst, if the process dies between them.
      fc.asyncProperty(
        programs('any', { early: false }),
        choices,
        choices,
        fc.nat(),
        async (program, these, those, cut) => {
          for (const picks of [these, those]) {
            const first = await perform(program, picks, { bursts: true })
            await checkPrefix(program, first, 1 + (cut % (first.journal.length - 1)), 'by outcomes')
          }
        },
      ),
      { numRuns: runs(300) },
    )
  })

  it('bursts replay as themselves beside waits that were made early, if the process dies between two of them', async () => {
    await fc.assert(
      fc.asyncProperty(programs(), choices, fc.nat(), async (program, picks, cut) => {
        const first = await perform(program, picks, { bursts: true })
        const lengths = first.rests.filter((length) => length < first.journal.length)
        const length = lengths[cut % lengths.length]
        if (length !== undefined) await checkPrefix(program, first, length, 'by outcomes')
      }),
      { numRuns: runs(300) },
    )
  })

  it('an empty catch around every call changes nothing: suspension is never thrown through the body', async () => {
    await fc.assert(
      fc.asyncProperty(programs('calm'), choices, async (program, picks) => {
        const plain = await perform(program, picks)
        const swallowing = await perform(program, picks, { swallow: true })
        expect(swallowing.play.seen).toEqual(plain.play.seen)
        expect(essences(swallowing.journal)).toEqual(essences(plain.journal))
        expect(swallowing.rig.commits.map(({ status }) => status)).toEqual(
          plain.rig.commits.map(({ status }) => status),
        )
      }),
      { numRuns: runs(300) },
    )
  })

  it('a run that was evicted while it was parked goes on as one that stayed in memory', async () => {
    await fc.assert(
      fc.asyncProperty(programs(), choices, async (program, picks) => {
        const stayed = await perform(program, picks, { how: 'in memory' })
        const evicted = await perform(program, picks, { how: 'replayed' })
        expect(evicted.play.seen.map(({ what, value }) => [what, value])).toEqual(
          stayed.play.seen.map(({ what, value }) => [what, value]),
        )
        expect(essences(seenIn(evicted.journal, stayed))).toEqual(essences(seenIn(stayed.journal, stayed)))
        expect(evicted.play.executed.toSorted()).toEqual(stayed.play.executed.toSorted())
        expect(await evicted.held.outcome()).toEqual(await stayed.held.outcome())
      }),
      { numRuns: runs(300) },
    )
  })

  it('steps that end at once show themselves to a replay in the order in which they ended', async () => {
    await fc.assert(
      fc.asyncProperty(programs('hasty'), choices, async (program, picks) => {
        const first = await perform(program, picks, { bursts: true })
        const prefix = first.journal.slice(0, -1)
        const rig = new FunctionRig({ seed: 8 })
        const play = new Play(rig, program)
        const held = await rig.adopt(play.definition, prefix)
        await held.begin()
        // A step that the body began and does not see any more is waited for.
        for (let [gate] = rig.gates; gate !== undefined; [gate] = rig.gates) await rig.succeed(gate.step)
        expect(comparable(play.seen, Infinity)).toEqual(comparable(first.play.seen, Infinity))
        expect(essences((await held.journal()).slice(-1))).toEqual(essences(first.journal.slice(-1)))
        expect(attemptsIn(prefix).filter((attempt) => play.executed.includes(attempt))).toEqual([])
      }),
      { numRuns: runs(300) },
    )
  })

  it('what ends while a replay is under way is shown after everything that was recorded', async () => {
    await fc.assert(
      fc.asyncProperty(programs(), choices, fc.nat(), async (program, picks, cut) => {
        const { journal } = await perform(program, picks, { bursts: true })
        const prefix = journal.slice(0, notBetweenWakings(journal, 1 + (cut % (journal.length - 1))))
        const [patient, eager] = await Promise.all(
          [false, true].map(async (eager) => {
            const rig = new FunctionRig({ seed: 8 })
            const play = new Play(rig, program, { eager })
            const held = await rig.adopt(play.definition, prefix)
            await held.begin()
            // A wait that is over already is seen without anybody's doing, in whichever order with steps that end at once.
            const isBeyond = (await held.journal()).slice(prefix.length).some(isOutcome)
            return { isBeyond, seen: comparable(play.bodies[0] ?? [], recordedIn(prefix)) }
          }),
        )
        fc.pre(patient?.isBeyond === false)
        expect(eager?.seen.slice(0, patient?.seen.length)).toEqual(patient?.seen)
      }),
      { numRuns: runs(300) },
    )
  })

  it('no step begins before everything that its run did earlier is durable', async () => {
    await fc.assert(
      fc.asyncProperty(programs('hasty'), choices, async (program, picks) => {
        const { play, rig, held, journal } = await perform(program, picks, { bursts: true })
        expect(play.broken).toEqual([])
        expect(rig.committedSeq(held.runId)).toBe(journal.length)
      }),
      { numRuns: runs(300) },
    )
  })

  it('between two turns of the event loop one call settles at most, and in the order of the journal', async () => {
    await fc.assert(
      fc.asyncProperty(programs('hasty'), choices, async (program, picks) => {
        const { play, journal } = await perform(program, picks, { bursts: true })
        const settled = play.settled
        expect(new Set(settled.map(({ turn }) => turn)).size).toBe(settled.length)
        const outcomes = journal.filter(isOutcome).map(({ name }) => name)
        const order = settled.filter(({ call }) => call !== null).map(({ call }) => outcomes.indexOf(call))
        expect(order).toEqual(order.toSorted((a, b) => a - b))
      }),
      { numRuns: runs(300) },
    )
  })
})

describe('the life of a run', () => {
  it('SW-P2 PQ-P1 whatever is done to it and wherever it dies: one end, each step undone once, last first', async () => {
    await fc.assert(
      fc.asyncProperty(programs('hastilyUndoing'), acts, fc.boolean(), async (program, script, gatesUndo) => {
        const rig = new FunctionRig({ seed: 7 })
        const play = new Play(rig, program, { gatesUndo })
        const held = await rig.start(play.definition)
        play.held = held
        await live(rig, held, play, script)
        const journal = await held.journal()
        expect(play.broken).toEqual([])
        expect(brokenRules(journal)).toEqual([])
        expect(journal.at(-1)?.kind).toBe(await held.status())
        expect(play.resourcesHeld).toBe(0)
      }),
      { numRuns: runs(1_000) },
    )
  })

  it('a replay of any prefix of a life that ends with undo work goes on to the same end', async () => {
    await fc.assert(
      fc.asyncProperty(programs('undoing'), choices, fc.nat(), async (program, picks, cut) => {
        const first = await perform(program, picks)
        expect(brokenRules(first.journal)).toEqual([])
        const length = notBetweenWakings(first.journal, 1 + (cut % (first.journal.length - 1)))
        const prefix = first.journal.slice(0, length)
        if (prefix.every(({ kind }) => kind !== 'failing')) return checkPrefix(program, first, length)
        const second = await takeOver(program, first, length)
        expect(essences(seenIn(second.journal, first))).toEqual(essences(seenIn(first.journal, first)))
        expect(second.play.executed.filter((attempt) => !attempt.startsWith('undo '))).toEqual([])
      }),
      { numRuns: runs(600) },
    )
  })

  it('what is attempted once more before it is undone goes on counting its attempts', async () => {
    const bad: Program = { do: 'step', name: 'a', ends: 'badly', undo: 'late second try' }
    const well: Program = { do: 'step', name: 'a', ends: 'well', undo: 'well' }
    const share: Program = { do: 'share', name: 'a', waits: [0, 0, 0], part: bad }
    const program: Program = { do: 'sequence', parts: [share, well] }
    const first = await perform(program, [0])
    for (let length = 1; length < first.journal.length; length += 1) {
      if (first.journal.slice(0, length).some(({ kind }) => kind === 'failing')) break
      await checkPrefix(program, first, length)
    }
  })
})
