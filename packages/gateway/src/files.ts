import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

// This module is in `src`, in `dist`, or in `dist` of the command, whose bundle has the same files around it
// (`scripts/bundle.js`).
const PACKAGE = new URL('../', import.meta.url)

const manifest = JSON.parse(readFileSync(new URL('package.json', PACKAGE), 'utf8')) as { version: string }

export const VERSION: string = manifest.version

/** The folder of the built console. */
export const CONSOLE_DIR: string = fileURLToPath(new URL('console/', PACKAGE))

/** A module that is preloaded into servers. It binds their listening sockets to loopback. */
export const LOOPBACK: URL = new URL('assets/loopback.js', PACKAGE)

/** The description of the HTTP API, in OpenAPI 3.1. */
export const OPENAPI: URL = new URL('openapi.json', PACKAGE)

/** The file from which servers that are installed beside this package are resolved. */
export const INSTALLED_FROM: string = import.meta.filename

/** The module of the thread that answers questions about changes. It is beside this one. */
export const CHANGE_THREAD: URL = new URL(`change-thread${path.extname(import.meta.filename)}`, import.meta.url)
