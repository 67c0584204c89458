// An application that uses Postgres only, for bundlers to build. It says what it got, or why it could not.

import { createHoldfast, workflow } from 'holdfast'

const greet = workflow('greet', (ctx, name) => ctx.step('say', () => `Hello, ${name}`))

async function main() {
  const holdfast = await createHoldfast({ store: process.env.STORE ?? '', workflows: [greet] })
  await holdfast.work()
  const run = await holdfast.start(greet, 'Ada')
  console.log(await run.result({ timeout: '1 min' }))
  await holdfast.close()
}

main().catch((error) => console.log(error.message))
