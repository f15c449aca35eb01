import { readFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { fileURLToPath } from 'node:url'

const WARM_UP = 50
/** A function counts if each of these calls enters it. Timers, such as polls of a store, run beside some of them. */
const RECORDED = 6

interface EnteredFunction {
  readonly url: string
  readonly lines: number
}

/** Does a thing until it is warm, then some more times under V8's precise coverage, and prints how many of our functions each time ran, by file. */
export async function record(doOnce: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < WARM_UP; i++) await doOnce()
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  let always = await entered(session, doOnce)
  for (let i = 1; i < RECORDED; i++) {
    const now = await entered(session, doOnce)
    always = new Map([...always].filter(([key]) => now.has(key)))
  }
  session.disconnect()
  const byUrl = Map.groupBy(always.values(), ({ url }) => url)
  const ran = [...byUrl].map(([url, functions]) => {
    return { url, functions: functions.length, lines: functions.reduce((sum, { lines }) => sum + lines, 0) }
  })
  console.log(`\n${JSON.stringify(ran)}`)
}

/** Returns the functions that a thing enters, by their places. */
async function entered(session: Session, doOnce: () => Promise<unknown>): Promise<Map<string, EnteredFunction>> {
  await session.post('Profiler.takePreciseCoverage')
  await doOnce()
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const found = new Map<string, EnteredFunction>()
  for (const { url, functions } of result.filter((one) => /\/packages\/[^/]+\/src\//.test(one.url))) {
    const text = readFileSync(fileURLToPath(url), 'utf8')
    for (const { functionName, ranges } of functions) {
      const [range] = ranges
      if (functionName === '' || !range || range.count === 0) continue
      const lines = text.slice(range.startOffset, range.endOffset).split('\n').length
      found.set(`${url} ${range.startOffset} ${functionName}`, { url, lines })
    }
  }
  return found
}
