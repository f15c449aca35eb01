// `npm run referees`: prints how to get the data of the public suites, and runs their tests.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { REFEREES, refereesFolder } from '../tests/support/referees.ts'

const ROOT = path.resolve(import.meta.dirname, '..')
const folder = refereesFolder()
const missing = Object.entries(REFEREES).filter(([key]) => !existsSync(path.join(folder, key)))

if (missing.length > 0) {
  console.log(`The data of ${missing.length} suites are not in ${folder} (TOOLGATE_REFEREES names another folder).`)
  console.log('Each is a Git repository; copy these parts of that commit there, a file by its last name:\n')
  for (const [key, { name, from, commit, parts }] of missing) {
    console.log(`  ${name}: https://github.com/${from}, commit ${commit}`)
    for (const part of parts) console.log(`    ${part} → ${key}/${path.posix.basename(part)}`)
  }
  console.log()
}

const tests = readdirSync(path.join(ROOT, 'tests/referees')).filter((file) => file.endsWith('.e2e.test.ts'))
const files = tests.map((file) => path.join('tests/referees', file))
const args = ['--conditions=toolgate-source', '--test', '--test-concurrency=1', ...files]
const { status } = spawnSync(process.execPath, args, { cwd: ROOT, stdio: 'inherit' })
process.exitCode = status ?? 1
