// The model in a folder, compiled by Cube: what is in it, and the SQL of each query on stdin.
const fs = require('fs');
const path = require('path');
const { prepareCompiler, PostgresQuery } = require('@cubejs-backend/schema-compiler');

const folder = process.argv[2];
const files = fs.readdirSync(folder)
  .filter((name) => name.endsWith('.yml'))
  .map((name) => ({ fileName: name, content: fs.readFileSync(path.join(folder, name), 'utf8') }));

async function main() {
  const compilers = prepareCompiler(
    { localPath: () => folder, dataSchemaFiles: async () => files },
    // Its template engine is a binary that npm does not carry; our files are no templates.
    { adapter: 'postgres', nativeInstance: { newJinjaEngine: () => null } },
  );
  await compilers.compiler.compile();
  const evaluator = compilers.cubeEvaluator;
  const model = Object.fromEntries(evaluator.cubeNames().map((name) => {
    const cube = evaluator.cubeFromPath(name);
    const names = (members) => Object.keys(members || {}).sort();
    return [name, {
      dimensions: names(cube.dimensions),
      measures: names(cube.measures),
      segments: names(cube.segments),
    }];
  }));
  const queries = JSON.parse(fs.readFileSync(0, 'utf8'));
  const sql = queries.map((query) => {
    const [text, values] = new PostgresQuery(
      compilers, { timezone: 'UTC', useNativeSqlPlanner: false, ...query },
    ).buildSqlAndParams();
    return { text, values };
  });
  console.log(JSON.stringify({ model, sql }));
}

main().catch((error) => { console.error(error.message || error); process.exit(1); });
