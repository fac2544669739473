// npm run docs: writes the generated parts of docs/.
import { writeFile } from 'node:fs/promises';
import { generatePages } from './pages.js';

for (const { path, expected } of await generatePages()) await writeFile(path, expected);
