import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

/** The shell has no windows, which cost more than the pages that the tests show in them. */
const PLACES = [
  process.env['CHROMIUM'],
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].filter((path) => path !== undefined)

/** Returns the path of this machine's Chromium. Without one it logs a line and returns `undefined`, or throws in CI. */
export function findChromium(): string | undefined {
  const path = PLACES.find((place) => existsSync(place))
  if (path !== undefined) return path
  const message = `Tests with a browser cannot run: no Chromium at ${PLACES.join(', ')}. Install one (apt-get install chromium-headless-shell) or set CHROMIUM to its path.`
  if (process.env['CI'] === 'true') throw new Error(message)
  console.warn(message)
  return undefined
}

export function launchChromium(executablePath: string): Promise<Browser> {
  const args = [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    '--no-first-run',
  ]
  return chromium.launch({ executablePath, args })
}
