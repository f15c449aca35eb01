import { Session } from 'node:inspector/promises'

const WARM_UP = 50

/** Does a thing until it is warm, then once more under V8's precise coverage, and prints which of our functions ran. */
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
    .map(({ url, functions }) => ({
      url,
      functions: functions.filter(({ functionName, ranges }) => functionName !== '' && (ranges[0]?.count ?? 0) > 0)
        .length,
    }))
    .filter(({ functions }) => functions > 0)
  console.log(`\n${JSON.stringify(ran)}`)
}
