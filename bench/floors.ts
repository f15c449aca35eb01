import { measure, printFigures } from './lib.ts'
import { makeTools } from './tools.ts'

const tools = makeTools(1000)
const denied: ReadonlySet<string> = new Set(tools.filter((_, i) => i % 10 === 3).map(({ id }) => id))
let sink = 0

async function bare(input: number): Promise<number> {
  return input + 1
}

/** The least that a list for one caller takes: ask a set and a tag of each tool. */
function plainLoop(): number {
  const visible: string[] = []
  for (const tool of tools) if (!denied.has(tool.id) && tool.tags.includes('read')) visible.push(tool.id)
  return visible.length
}

const figures = await measure([
  {
    name: 'a bare async call',
    async run(count) {
      for (let i = 0; i < count; i++) sink += await bare(i)
    },
  },
  {
    name: 'a plain loop over 1,000 tools',
    run(count) {
      for (let i = 0; i < count; i++) sink += plainLoop()
    },
  },
])
printFigures('Floors', figures, 'a bare async call')
if (Number.isNaN(sink)) throw new Error('the floors computed nothing')
