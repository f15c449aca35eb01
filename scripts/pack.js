// Packs what to publish into `packs/`, and prints how to install it: `npm run pack`, or `node scripts/pack.js <folder>`.
import { spawnSync } from 'node:child_process'
import { globSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'

const ROOT = path.resolve(import.meta.dirname, '..')
const [given = 'packs'] = process.argv.slice(2)
const folder = path.resolve(ROOT, given)

const packages = globSync('packages/*/package.json', { cwd: ROOT })
  .toSorted()
  .map((file) => ({ at: path.dirname(file), ...JSON.parse(readFileSync(path.join(ROOT, file), 'utf8')) }))
  .filter((manifest) => !manifest.private)

run(process.execPath, [path.join(ROOT, 'node_modules/typescript/bin/tsc'), '-b'])
mkdirSync(folder, { recursive: true })
// A tarball of an earlier version would be installed with the others.
for (const old of globSync('toolgate-*.tgz', { cwd: folder })) rmSync(path.join(folder, old))
run('npm', ['pack', '--silent', '--pack-destination', folder, ...packages.flatMap(({ at }) => ['--workspace', at])])

// Whole paths, since they are installed from another folder.
const tarball = ({ name, version }) =>
  quoted(path.join(folder, `${name.replace('@', '').replace('/', '-')}-${version}.tgz`))
const quoted = (file) => (/^[\w./:@-]+$/.test(file) ? file : `'${file.replaceAll("'", `'\\''`)}'`)
const library = packages.filter(({ name }) => name !== 'toolgate')
const command = packages.find(({ name }) => name === 'toolgate')
console.log(`
Nothing is published on npm yet: "toolgate" and "@toolgate/…" there would be somebody else's. Install these files.

The command:
  npm install --global ${tarball(command)}
or, in a folder of its own, where "npx toolgate" runs it:
  npm install ${tarball(command)}

The library, beside your agent (all of them, as they depend on each other):
  npm install ${library.map(tarball).join(' ')}`)

function run(program, args) {
  const { status, error } = spawnSync(program, args, { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] })
  if (error || status !== 0) throw new Error(`${program} ${args.join(' ')} failed`, { cause: error })
}
