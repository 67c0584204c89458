// One start or one signal that the database takes too long for, among many that go with it: only its own caller gets the error.

import { describe, expect, it } from 'vitest'
import { workflow } from 'holdfast'
import { place } from './lent.ts'

const count = 120
const poison = 'poison'

/** Whatever holds the word takes longer than anybody waits. */
const trap = `
  create function holdfast.trap() returns trigger language plpgsql as $$ begin perform pg_sleep(600); return new; end $$;
  create trigger trap before insert on holdfast.journal for each row when (new.data like '%${poison}%')
    execute function holdfast.trap();
  create trigger trap before insert on holdfast.messages for each row when (new.data like '%${poison}%')
    execute function holdfast.trap()`

describe('a poisonous unit in a flush', { timeout: 120_000 }, () => {
  it.each(['starts', 'signals'] as const)(
    'of %s is rejected alone: the others are sent again without it',
    async (what) => {
      const here = await place({ storageTimeout: '3s' })
      const flow = workflow('flow', (ctx, _input: string) => ctx.receive('go'))
      const holdfast = await here.open({ workflows: [flow] })
      const boxes = await Promise.all(Array.from({ length: count }, (_, at) => holdfast.start(flow, `box ${at}`)))
      await here.client.query(trap)
      const texts = boxes.map((_, at) => (at === count / 2 ? poison : `harmless ${at}`))
      const send = async (box: (typeof boxes)[number], text: string): Promise<void> => {
        await (what === 'starts' ? holdfast.start(flow, text) : box.signal('go', text))
      }
      const sent = boxes.map((box, at) => send(box, texts[at] as string))
      const ends = await Promise.allSettled(sent)
      const rejected = ends.flatMap((end, at) =>
        end.status === 'rejected' ? [[texts[at], end.reason as unknown]] : [],
      )
      expect(rejected).toEqual([[poison, expect.objectContaining({ code: 'STORE_UNAVAILABLE' })]])
    },
  )
})
