import { enableCompileCache } from 'node:module'
import { COMPILE_CACHE } from './files.ts'
import { optimizeLate } from './optimize-late.ts'
import { keepYoungGenerationSmall } from './young-generation.ts'

// This runs before the rest is loaded, which causes most of the compilation and allocation.
keepYoungGenerationSmall()
optimizeLate()
// The cache is beside the code. In the system's temporary folder, another user could replace the code. A folder that is
// not writable is no error.
enableCompileCache(COMPILE_CACHE)
await import('./run.ts')
