// CommonJS that uses the package, as Node allows from 20.19 on.

const { createHoldfast, workflow } = require('holdfast')
const { createTest } = require('holdfast/testing')

const greet = workflow('greet', (ctx, name) => ctx.step('say', () => `Hello, ${name}`))

async function main() {
  const holdfast = await createHoldfast({ store: 'memory:', workflows: [greet] })
  await holdfast.close()
  const t = await createTest({ workflows: [greet] })
  const run = await t.start(greet, 'Ada')
  console.log(await run.result())
  await t.close()
}

void main()
