// Programs that fast-check can make, shrink and print.

import { fc } from './properties.ts'
import type { Ends, Program, Undoes } from './function-program.ts'

const name = fc.constantFrom('a', 'b', 'c#2', 'd/e%')

const endings = {
  /** Never fails in the end. */
  calm: ['well', 'second try', 'late second try'],
  any: ['well', 'well', 'well', 'well', 'badly', 'second try', 'late second try'],
  hasty: [
    'well',
    'well',
    'badly',
    'second try',
    'late second try',
    'at once',
    'at once',
    'throws at once',
    'throws twice at once',
  ],
  /** Steps that can be undone, and bodies that fail often enough. */
  undoing: ['well', 'well', 'well', 'badly', 'second try'],
  hastilyUndoing: ['well', 'well', 'badly', 'second try', 'at once', 'throws at once'],
} as const satisfies Record<string, readonly Ends[]>

/** `early`: some of them make waits that they await later. */
export function programs(mood: keyof typeof endings = 'any', { early = true } = {}): fc.Arbitrary<Program> {
  const ends = fc.constantFrom<Ends>(...endings[mood])
  const undoes = fc.constantFrom<Undoes | null>('well', 'well', 'second try', 'late second try', 'badly', null)
  const undo = mood === 'undoing' || mood === 'hastilyUndoing' ? undoes : fc.constant(null)
  const { program } = fc.letrec<{ program: Program; parts: readonly Program[] }>((tie) => ({
    parts: fc.array(tie('program'), { minLength: 1, maxLength: 3 }),
    program: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      { weight: 5, arbitrary: fc.record({ do: fc.constant('step' as const), name, ends, undo }) },
      {
        weight: 2,
        arbitrary: fc.record({
          do: fc.constant('value' as const),
          of: fc.constantFrom('now' as const, 'random' as const, 'uuid' as const, 'log' as const, 'progress' as const),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          do: fc.constant('sleep' as const),
          ms: fc.constantFrom(5, 40, 5_000),
          until: fc.boolean(),
        }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('unawaited' as const), name }) },
      {
        weight: early ? 2 : 0,
        arbitrary: fc.record({
          do: fc.constant('send' as const),
          to: fc.constantFrom('itself' as const, 'a key' as const, 'a topic' as const),
        }),
      },
      {
        weight: early ? 2 : 0,
        arbitrary: fc.record({
          do: fc.constant('early' as const),
          ms: fc.constantFrom(5, 40, 5_000),
          part: tie('program'),
          fate: fc.constantFrom('awaited' as const, 'raced' as const, 'left' as const),
        }),
      },
      { weight: 4, arbitrary: fc.record({ do: fc.constant('sequence' as const), parts: tie('parts') }) },
      {
        weight: 5,
        arbitrary: fc.record({
          do: fc.constant('together' as const),
          how: fc.constantFrom('all' as const, 'allSettled' as const, 'race' as const, 'any' as const),
          parts: tie('parts'),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({ do: fc.constant('branch' as const), name, part: tie('program') }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          do: fc.constant('loop' as const),
          times: fc.integer({ min: 2, max: 3 }),
          part: tie('program'),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          do: fc.constant('try' as const),
          part: tie('program'),
          caught: tie('program'),
          at: fc.constantFrom('catch' as const, 'finally' as const),
        }),
      },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('resource' as const), part: tie('program') }) },
      {
        weight: 2,
        arbitrary: fc.record({
          do: fc.constant('share' as const),
          name,
          waits: fc.array(fc.nat(4), { minLength: 2, maxLength: 3 }),
          part: tie('program'),
        }),
      },
    ),
  }))
  return program
}
