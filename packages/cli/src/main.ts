import { enableCompileCache } from 'node:module'
import { COMPILE_CACHE } from './files.ts'
import { optimizeLate } from './optimize-late.ts'
import { keepYoungGenerationSmall } from './young-generation.ts'

// Before the rest is loaded, which is most of what is compiled and allocated.
keepYoungGenerationSmall()
optimizeLate()
// Beside the code: in the system's folder for temporary files, another user could put their own code in its place.
// A folder that cannot be written to is no error.
enableCompileCache(COMPILE_CACHE)
await import('./run.ts')
