/** A text that a reader of JSON must withstand. */
export interface HostileBody {
  readonly name: string
  readonly body: string | Buffer
  /** The rest of the sentence that refuses it. Absent for a text that is read. */
  readonly problem?: RegExp
}

const many = (count: number, make: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => make(i)).join()

/**
 * Returns the bodies that every door is asked with. `wrap` puts a JSON value where the door has free values.
 *
 * A door whose bodies have fewer bytes may refuse the large ones for their size.
 */
export function hostileBodies(wrap: (json: string) => string): readonly HostileBody[] {
  return [
    { name: '250,000 keys', body: wrap(`{${many(250_000, (i) => `"k${i}":1`)}}`), problem: /more than 10000 keys/ },
    { name: '50,001 values', body: wrap(`[${many(50_001, () => '1')}]`), problem: /more than 50000 values/ },
    { name: '65 levels', body: wrap('['.repeat(65) + ']'.repeat(65)), problem: /more than 64 levels/ },
    { name: 'a million brackets', body: wrap('['.repeat(1_000_000)), problem: /more than 64 levels/ },
    { name: 'a long key', body: wrap(`{"${'k'.repeat(4097)}":1}`), problem: /a key of more than 4096 characters/ },
    { name: 'a key twice', body: wrap('{"a":1,"a":2}'), problem: /a key that occurs twice/ },
    { name: 'a key twice, escaped', body: wrap(String.raw`{"a":1,"\u0061":2}`), problem: /a key that occurs twice/ },
    { name: '1e400', body: wrap('1e400'), problem: /a number that is too large/ },
    { name: 'bytes that are not UTF-8', body: Buffer.from(wrap('"\xff"'), 'latin1'), problem: /not UTF-8/ },
    { name: 'UTF-16', body: Buffer.from(`\ufeff${wrap('1')}`, 'utf16le'), problem: /not UTF-8/ },
    { name: 'a truncated text', body: wrap('{"a":').slice(0, -2), problem: /not JSON/ },
    { name: 'two values', body: `${wrap('1')}{}`, problem: /not JSON/ },
    { name: 'nothing', body: '', problem: /not JSON/ },
    { name: 'null', body: 'null', problem: /object/ },
    { name: 'a list', body: '[]', problem: /object|batch/i },
    { name: 'a byte order mark', body: `\ufeff${wrap('1')}` },
    { name: 'lone surrogates', body: wrap(String.raw`{"\ud800":"\udfff"}`) },
  ]
}
