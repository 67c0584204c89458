// A route handler of an application that uses Postgres only.

import { createHoldfast, workflow } from 'holdfast'

const greet = workflow('greet', (ctx, name) => ctx.step('say', () => `Hello, ${name}`))

export const dynamic = 'force-dynamic'

export async function GET() {
  const holdfast = await createHoldfast({ store: process.env.DATABASE_URL, workflows: [greet] })
  const { id } = await holdfast.start(greet, 'Ada')
  await holdfast.close()
  return Response.json({ id })
}
