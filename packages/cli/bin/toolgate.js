#!/usr/bin/env node
// Committed as it is: npm links it at the first install, when nothing is built yet.
import { existsSync, readFileSync } from 'node:fs'

const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 18)) {
  console.error(`toolgate needs Node 22.18 or later; this is ${process.version}.`)
  process.exit(2)
}

// Scripts ask for the version often, so it loads nothing.
if (process.argv.length === 3 && process.argv[2] === '--version')
  console.log(JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version)
else await runCommand()

async function runCommand() {
  const built = new URL('../dist/main.js', import.meta.url)
  const fromSource = process.execArgv.some((arg) => arg.includes('toolgate-source')) || !existsSync(built)
  if (fromSource) {
    // As `node --conditions=toolgate-source` does, which a command cannot be started with.
    const { registerHooks } = await import('node:module')
    registerHooks({
      resolve: (specifier, context, next) =>
        next(specifier, { ...context, conditions: [...context.conditions, 'toolgate-source'] }),
    })
  }
  await import(fromSource ? new URL('../src/main.ts', import.meta.url).href : built.href)
}
