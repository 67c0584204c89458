// The message of a failed trial: what happened, what was expected, what the result was, and what to change.

import { HoldfastError, isHoldfastError, messageOf } from '../../../core/errors/error.ts'
import { findingText, type BodyFinding } from '../body-watch.ts'
import { isReordered, repeatedIn, storyOf, type Repeated } from './crash-story.ts'
import type { ReplayFinding } from './replays.ts'
import type { TrialPlan } from './trial-plan.ts'
import type { Trial } from './trial.ts'
import { inWords } from '../waiting-run.ts'

/** The fault of a trial. */
export type Fault =
  | { readonly kind: 'during'; readonly error: unknown }
  | { readonly kind: 'not-ended' }
  | { readonly kind: 'keys'; readonly steps: readonly string[] }
  | { readonly kind: 'replay'; readonly finding: ReplayFinding }
  /** A body does something that a replay could not repeat, though no replay took another path. */
  | { readonly kind: 'body'; readonly findings: readonly BodyFinding[] }
  /** It does not end as the test expects, also without a crash. */
  | { readonly kind: 'status'; readonly expected: string; readonly got: string }
  | { readonly kind: 'end'; readonly expected: string; readonly got: string }
  | { readonly kind: 'check'; readonly error: unknown }

/** What the trials have in common. */
export interface Surroundings {
  readonly type: string
  readonly seed: number
  /** How many commits the run takes when no process dies. */
  readonly usual: number
}

/** The error for a user whose workflow does not survive a trial. */
export function unsafe(fault: Fault, trial: Trial<unknown>, around: Surroundings): HoldfastError {
  const { plan } = trial
  const story = storyOf(trial, around.usual)
  const repeated = repeatedIn(trial.attempts)
  const only: TrialPlan = { ...plan, seed: plan.seed ?? around.seed }
  const lines = [
    `Workflow "${around.type}" does not always end as it should. ${headline(fault)}`,
    `What happened: ${story}.`,
    ...evidence(fault, trial),
    ...repeated.map(repetition),
    `What to change: ${advice(fault, trial, repeated)}`,
    `To repeat this trial alone: crashEverywhere(…, { only: ${JSON.stringify(only)} })`,
  ]
  const cause = 'error' in fault ? { cause: fault.error } : {}
  return new HoldfastError('CRASH_UNSAFE', lines.join('\n'), {
    ...cause,
    details: { fault: fault.kind, only, story, repeated, status: trial.view.status, end: trial.end },
  })
}

function headline(fault: Fault): string {
  switch (fault.kind) {
    case 'during':
      return 'The `during` function of the test failed.'
    case 'not-ended':
      return 'It did not come to its end.'
    case 'keys':
      return 'A step did not keep its idempotency key.'
    case 'replay':
      return 'Its body takes another path when it is replayed.'
    case 'body':
      return 'A body does something that a replay could not repeat.'
    case 'status':
      return 'It ended otherwise than the test expects.'
    case 'end':
      return 'It ended otherwise than without that.'
    case 'check':
      return 'The check failed.'
  }
}

function evidence(fault: Fault, { waiting, t, commits }: Trial<unknown>): readonly string[] {
  switch (fault.kind) {
    case 'during':
      return [`It threw: ${messageOf(fault.error)}`]
    case 'check':
      return [`It says: ${messageOf(fault.error)}`]
    case 'not-ended':
      return [
        `It has committed ${commits.length} times so far.`,
        ...waiting.map(({ type, status, waitsFor }) => {
          const what = waitsFor.map((one) => inWords(one, t.now.getTime())).join(' or ')
          return `A run of "${type}" is ${status}, and waits for ${what}.`
        }),
      ]
    case 'keys':
      return [`It was ${fault.steps.map((step) => `"${step}"`).join(', ')}.`]
    case 'status':
    case 'end':
      return [`Expected: ${fault.expected}`, `Got:      ${fault.got}`]
    case 'replay':
      return replayEvidence(fault.finding)
    case 'body':
      return fault.findings.map(findingText)
  }
}

function replayEvidence({ run, replayed, reads }: ReplayFinding): readonly string[] {
  const looks = reads.map(({ what, place }) => `The body reads ${what}${place === null ? '' : `, at ${place}`}`)
  if (replayed.outcome === 'drift') {
    const { recorded, found } = replayed.drift
    const asks = found.map(({ kind, name, place }) => `${kind} "${name}"${place === null ? '' : `, at ${place}`}`)
    return [
      `- entry ${recorded.seq} of the journal: ${recorded.kind} "${recorded.name}"`,
      ...(asks.length === 0 ? ['+ the body ends without it'] : asks.map((ask) => `+ the body asks for: ${ask}`)),
      ...looks,
    ]
  }
  if (replayed.outcome === 'throws') return [`In a replay it throws: ${messageOf(replayed.error)}`, ...looks]
  if (replayed.outcome === 'folds-otherwise') {
    const { seq, recorded, now } = replayed
    return [`The state at entry ${seq} was ${shownValue(recorded)}`, `In a replay it is ${shownValue(now)}`, ...looks]
  }
  const { recorded, now } = replayed
  return [`The run of "${run.type}" had ${endText(recorded)}`, `In a replay it has ${endText(now)}`, ...looks]
}

function endText(end: { readonly status: string; readonly output?: unknown; readonly error?: unknown }): string {
  if (end.status === 'succeeded') return `succeeded with ${shownValue(end.output)}`
  if (end.status === 'failed') return `failed with ${messageOf(end.error)}`
  return end.status === 'waiting' ? 'not ended: it asks for more' : 'begun anew'
}

const longestShown = 300

function shownValue(value: unknown): string {
  let text: string
  try {
    text = JSON.stringify(value) ?? String(value)
  } catch {
    text = String(value)
  }
  return text.length > longestShown ? `${text.slice(0, longestShown)}…` : text
}

function repetition({ step, isUndo, times, hasReadKey }: Repeated): string {
  const who = isUndo ? `The undo of step "${step}"` : `Step "${step}"`
  const key = hasReadKey ? 'It read its idempotencyKey.' : 'It never read its idempotencyKey.'
  return `${who} did its work ${times} times, because the first result was not recorded. ${key}`
}

function advice(fault: Fault, trial: Trial<unknown>, repeated: readonly Repeated[]): string {
  switch (fault.kind) {
    case 'during':
      return 'look at the error, and at the assumptions of `during`: after a crash a run may be at another point than usual.'
    case 'not-ended':
      return notEndedAdvice(trial)
    case 'keys':
      return 'nothing of yours: please report this, with the workflow, as a defect of Holdfast.'
    case 'replay':
    case 'body':
      return replayAdvice
    case 'status':
      return statusAdvice(trial)
    case 'end':
      if (holdsKey(fault, trial)) return keyAdvice
      return repeated.length > 0 ? repeatedAdvice(repeated) : otherAdvice(trial)
    case 'check':
      return repeated.length > 0 ? repeatedAdvice(repeated) : otherAdvice(trial)
  }
}

const replayAdvice =
  'the body may depend on its input and on the results of its calls of ctx, and on nothing else. Take random values and time ' +
  'from ctx.random(), ctx.uuid() and ctx.now(), put code that reads the outside world into a step, and keep no state outside ' +
  'of the function: no variable of the module, and nothing of ctx.services that changes.'

/** The output contains the key of an effect, which has the number of its entry: a crash may give it another one. */
function holdsKey({ expected, got }: Extract<Fault, { kind: 'end' }>, { attempts }: Trial<unknown>): boolean {
  const unnumbered = (text: string): string =>
    attempts.reduce((rest, { idempotencyKey: key }) => rest.split(key.replace(/\d+$/, '')).join('…'), text)
  const isKept = attempts.some(({ idempotencyKey }) => got.includes(idempotencyKey))
  return isKept && unnumbered(got).replaceAll(/…\d+/g, '…') === unnumbered(expected).replaceAll(/…\d+/g, '…')
}

const keyAdvice =
  'the output contains an idempotency key. That of an effect ends with the number of its entry in the journal, which may be ' +
  'another one after a crash. Leave the key out of the output, or pass ' +
  'sameOutput: false and say in `check` what must hold.'

function repeatedAdvice(repeated: readonly Repeated[]): string {
  const names = repeated.map(({ step }) => `"${step}"`).join(', ')
  const careless = repeated.some(({ hasReadKey }) => !hasReadKey)
  const how = careless
    ? 'pass its idempotencyKey to the service that it calls (`({ idempotencyKey }) => bank.charge(…, { idempotencyKey })`), or ' +
      'make it check before it acts.'
    : 'it reads its idempotencyKey, but the service that it calls ignores it: the service must do its work once for each key, and ' +
      'return the first answer again. Or make the step check before it acts.'
  return `a process may die after a step has done its work and before that is recorded, and then the step is run again. For ${names}: ${how}`
}

function otherAdvice({ plan }: Trial<unknown>): string {
  if (isReordered(plan)) {
    return (
      'the result depends on which of the parallel steps finishes first. If it must not, use the array that Promise.all ' +
      'returns, which is in the order of its list. If it may, pass sameOutput: false, and say in `check` what must hold.'
    )
  }
  return (
    'look at what the run does besides its steps: every effect belongs in a step, and `during` must fit a run that ' +
    'continues later than usual. If the output may differ, pass sameOutput: false, and say in `check` what must hold.'
  )
}

function statusAdvice({ view: { status, error } }: Trial<unknown>): string {
  if (isHoldfastError(error, 'WORKFLOW_UNKNOWN')) return 'name every workflow that takes part in `workflows`.'
  return `if it is to end so, pass ends: '${status}'. Otherwise look at why it did, before any process dies.`
}

function notEndedAdvice({ waiting }: Trial<unknown>): string {
  const all = waiting.flatMap(({ waitsFor }) => waitsFor)
  const sent = all.find(({ kind }) => kind === 'signal' || kind === 'topic')
  if (sent !== undefined && 'name' in sent) {
    const how = sent.kind === 'signal' ? `run.signal('${sent.name}', …)` : `t.broadcast(topic, …)`
    return `the test did not send ${sent.kind} "${sent.name}". Send it during the run: during: async (t, run) => { await t.drain(); await ${how} }.`
  }
  if (all.some(({ kind }) => kind === 'token')) {
    return 'the test did not complete its token. Do it during the run: during: async (t) => { await t.complete(token, …) }.'
  }
  if (all.some(({ kind }) => kind === 'resume')) return replayAdvice
  if (all.some(({ kind }) => kind === 'step')) return 'let the step return, or give it a timeout.'
  return 'let the run come to an end, or allow more time with `atMost`.'
}
