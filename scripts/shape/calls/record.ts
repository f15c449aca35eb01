import { readFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { fileURLToPath } from 'node:url'

const WARM_UP = 50

/** Does a thing until it is warm, then once more under V8's precise coverage, and prints how many of our functions ran, by file. */
export async function record(doOnce: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < WARM_UP; i++) await doOnce()
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  await session.post('Profiler.takePreciseCoverage')
  await doOnce()
  const { result } = await session.post('Profiler.takePreciseCoverage')
  session.disconnect()
  const ran = result
    .filter(({ url }) => /\/packages\/[^/]+\/src\//.test(url))
    .map(({ url, functions }) => {
      const text = readFileSync(fileURLToPath(url), 'utf8')
      const entered = functions.flatMap(({ functionName, ranges: [range] }) =>
        functionName !== '' && range && range.count > 0 ? [linesOf(text, range)] : [],
      )
      return { url, functions: entered.length, lines: entered.reduce((sum, lines) => sum + lines, 0) }
    })
    .filter(({ functions }) => functions > 0)
  console.log(`\n${JSON.stringify(ran)}`)
}

function linesOf(text: string, { startOffset, endOffset }: { startOffset: number; endOffset: number }): number {
  return text.slice(startOffset, endOffset).split('\n').length
}
