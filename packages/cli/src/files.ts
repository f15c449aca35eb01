import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

// This module is in `src`, or in the bundle in `dist`.
const PACKAGE = new URL('../', import.meta.url)

/** The command itself. */
export const BIN: string = fileURLToPath(new URL('bin/toolgate.js', PACKAGE))

/** Servers that are installed beside this package are found from here. */
export const INSTALLED_FROM: string = import.meta.filename

/** Where compiled code is kept between starts. */
export const COMPILE_CACHE: string = fileURLToPath(new URL('dist/.cache/', PACKAGE))

export function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('package.json', PACKAGE), 'utf8')) as { version: string }
  return version
}

/** In a clone of the repository, and in the packed command. */
const QUICKSTARTS = ['../../examples/quickstart/toolgate.yaml', 'quickstart/toolgate.yaml']

/** Returns how people start this command: in a clone, by its own npx. */
export function commandName(): string {
  const [ofClone = ''] = QUICKSTARTS
  return existsSync(fileURLToPath(new URL(ofClone, PACKAGE))) ? 'npx toolgate' : 'toolgate'
}

/** Returns the path of the quickstart's configuration. */
export function findQuickstart(): string | undefined {
  return QUICKSTARTS.map((file) => fileURLToPath(new URL(file, PACKAGE))).find((file) => existsSync(file))
}
