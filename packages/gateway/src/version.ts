import { createRequire } from 'node:module'

// Read at run time: importing it would put it outside the compiler's root folder.
const manifest = createRequire(import.meta.url)('../package.json') as { version: string }

export const VERSION: string = manifest.version
