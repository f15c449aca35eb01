import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

// This module is in `src`, or in the bundle in `dist`.
const PACKAGE = new URL('../', import.meta.url)

/** The path of the command itself. */
export const BIN: string = fileURLToPath(new URL('bin/toolgate.js', PACKAGE))

/** The path from which servers beside this package are resolved. */
export const INSTALLED_FROM: string = import.meta.filename

/** The folder in which compiled code is kept between starts. */
export const COMPILE_CACHE: string = fileURLToPath(new URL('dist/.cache/', PACKAGE))

export function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('package.json', PACKAGE), 'utf8')) as { version: string }
  return version
}

/** The paths of the quickstart: in a clone of the repository, and in the packed command. */
const QUICKSTARTS = ['../../examples/quickstart/toolgate.yaml', 'quickstart/toolgate.yaml']

/** Returns the text with which people start this command. In a clone it uses npx. */
export function commandName(): string {
  const [ofClone = ''] = QUICKSTARTS
  return existsSync(fileURLToPath(new URL(ofClone, PACKAGE))) ? 'npx toolgate' : 'toolgate'
}

/** Returns the path of the quickstart's configuration. */
export function findQuickstart(): string | undefined {
  return QUICKSTARTS.map((file) => fileURLToPath(new URL(file, PACKAGE))).find((file) => existsSync(file))
}
