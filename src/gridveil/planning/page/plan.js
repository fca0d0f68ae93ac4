"use strict";
// The page of `gridveil plan`: it sends the choice to its own server and shows the answer.
(() => {
  const $ = (id) => document.getElementById(id);
  const WAIT = 250; // ms between questions while runs are being made
  let start = null; // what there is to choose from
  let kind = null; // the chosen kind
  let asked = 0; // questions so far: only the last one's answer is shown
  let timer = 0;
  let shownPictures = "";
  let file = ""; // release.toml of what is shown

  const make = (tag, text, className) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  // Digits that say something, whatever the size: an error of 0.004 MW is not 0.00.
  const number = (value) =>
    value >= 100 || value === 0
      ? value.toFixed(0)
      : value >= 1
        ? value.toFixed(value >= 10 ? 1 : 2)
        : value >= 1e-4
          ? value.toPrecision(2)
          : value.toExponential(1);

  // -- the controls ------------------------------------------------------------------------------
  const options = (box, group, all, chosen, changed) => {
    $(box).replaceChildren(
      ...all.map((one) => {
        const label = make("label", undefined, "option");
        const input = make("input");
        input.type = "radio";
        input.name = group;
        input.value = one.name;
        input.checked = one.name === chosen;
        input.addEventListener("change", () => changed(one.name));
        label.append(input, make("b", one.title));
        if (one.text) label.append(make("span", one.text, "small"));
        return label;
      }),
    );
  };
  const picked = (group) => document.querySelector(`input[name=${group}]:checked`).value;
  const chosen = () => kind.parameters.filter((one) => $(`private-${one.name}`).checked);

  // A labelled text field with its fault and a line of explanation below.
  const field = (id, title, value, hint, unit) => {
    const input = make("input");
    input.id = id;
    input.value = value;
    input.spellcheck = false;
    input.setAttribute("aria-describedby", `${id}-text ${id}-fault`);
    input.addEventListener("input", ask);
    const label = make("label", title);
    label.htmlFor = id;
    const fault = make("p", "", "fault");
    fault.id = `${id}-fault`;
    fault.setAttribute("role", "alert");
    fault.hidden = true;
    const text = make("p", hint, "small");
    text.id = `${id}-text`;
    if (unit === undefined) return [label, input, fault, text];
    const row = make("div", undefined, "row");
    const amount = make("span", undefined, "amount");
    amount.append(input, make("span", unit));
    row.append(label, amount);
    return [row, fault, text];
  };
  const nearest = (values, wanted) => {
    const gaps = values.map((value) => Math.abs(Math.log(parseFloat(value) / wanted)));
    return gaps.indexOf(Math.min(...gaps));
  };
  const sliders = {}; // the values of each, by the field that it belongs to
  const pair = (name, slider, values) => {
    sliders[name] = values;
    slider.max = values.length - 1;
    follow(name, parseFloat($(name).value));
    slider.oninput = () => {
      $(name).value = values[slider.value];
      slider.setAttribute("aria-valuetext", $(name).value);
      ask();
    };
  };
  const follow = (name, value) => {
    const slider = $(`${name}-slider`);
    slider.value = nearest(sliders[name], value);
    slider.setAttribute("aria-valuetext", $(name).value);
  };

  // Amounts, shares of each value or steps by class: what is typed decides, the list writes a first one.
  const stepsOf = (text) => (text.includes(":") ? "class" : text.includes("%") ? "share" : "amount");
  const stepsBox = (one) => {
    const row = make("div", undefined, "row");
    const label = make("label", "Steps");
    const list = make("select");
    list.id = label.htmlFor = `steps-${one.name}`;
    for (const steps of one.steps) {
      const item = make("option", steps.title);
      item.value = steps.name;
      list.append(item);
    }
    list.addEventListener("change", () => {
      $(`alpha-${one.name}`).value = one.steps.find((steps) => steps.name === list.value).alpha;
      fitSteps(one);
      ask();
    });
    row.append(label, list);
    return row;
  };
  const fitSteps = (one) => {
    const input = $(`alpha-${one.name}`);
    const slider = $(`alpha-${one.name}-slider`);
    const steps = one.steps.find((kind) => kind.name === stepsOf(input.value));
    $(`steps-${one.name}`).value = steps.name;
    input.nextSibling.textContent = steps.unit;
    input.classList.toggle("long", !steps.alphas.length);
    slider.hidden = !steps.alphas.length;
    if (steps.alphas.length) pair(`alpha-${one.name}`, slider, steps.alphas);
    else delete sliders[`alpha-${one.name}`];
  };

  const parameterBox = (one, first) => {
    const box = make("div", undefined, "private");
    const label = make("label", undefined, "choice");
    const tick = make("input");
    tick.type = "checkbox";
    tick.id = `private-${one.name}`;
    tick.checked = first;
    label.append(tick, make("b", one.title));
    label.hidden = kind.parameters.length < 2;
    const more = make("div", undefined, "more");
    more.hidden = !first;
    const [row, fault, text] = field(`alpha-${one.name}`, "Alpha", one.alpha, one.meaning, one.unit);
    row.querySelector("input").inputMode = "decimal";
    const slider = make("input");
    slider.type = "range";
    slider.id = `alpha-${one.name}-slider`;
    slider.min = 0;
    slider.step = 1;
    slider.setAttribute("aria-label", `Alpha of ${one.title}`);
    if (one.steps.length) more.append(stepsBox(one));
    more.append(row, slider, fault, text);
    if (one.range_hint) {
      more.append(...field(`range-${one.name}`, "Range", "", one.range_hint, one.unit));
    }
    tick.addEventListener("change", () => {
      more.hidden = !tick.checked;
      ask();
    });
    box.append(label, more);
    return box;
  };
  const chooseKind = (name) => {
    kind = start.kinds.find((one) => one.name === name);
    $("parameters").replaceChildren(...kind.parameters.map((one, place) => parameterBox(one, place === 0)));
    for (const one of kind.parameters) {
      pair(`alpha-${one.name}`, $(`alpha-${one.name}-slider`), one.alphas);
      if (one.steps.length) $(`alpha-${one.name}`).addEventListener("input", () => fitSteps(one));
    }
    for (const id of ["parameter-legend", "parameter-text"]) $(id).hidden = kind.parameters.length < 2;
    options("methods", "method", kind.methods, kind.methods[0].name, ask);
    $("size-label").textContent = `Stand-in: ${kind.size.counts}`;
    $("size").value = kind.size.first;
    $("size").disabled = kind.size.least === kind.size.most;
    $("stand-in").textContent = kind.stand_in;
    $("fields").replaceChildren(
      ...kind.fields.map((one) => {
        const box = make("div", undefined, "control");
        box.append(...field(`field-${one.name}`, one.title, one.value, one.hint));
        return box;
      }),
    );
    clearAccuracy("The first run is being made\u2026");
  };

  // -- questions and answers ---------------------------------------------------------------------
  const question = () => ({
    kind: kind.name,
    private: chosen().map((one) => ({
      name: one.name,
      alpha: $(`alpha-${one.name}`).value,
      range: one.range_hint ? $(`range-${one.name}`).value : "",
    })),
    method: picked("method"),
    epsilon: $("epsilon").value,
    size: $("size").value,
    dataset: $("dataset").value,
    fields: Object.fromEntries(kind.fields.map((one) => [one.name, $(`field-${one.name}`).value])),
  });
  const ask = () => {
    asked += 1;
    $("copy").disabled = $("save").disabled = true; // the command of what was chosen before
    $("command").classList.add("old");
    clearTimeout(timer);
    timer = setTimeout(send, 120, asked);
  };
  const send = async (mine) => {
    let answer;
    try {
      const reply = await fetch("api/plan", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(question()),
      });
      answer = reply.ok
        ? await reply.json()
        : { problem: await reply.text(), remedy: "Start gridveil plan again." };
    } catch {
      answer = {
        problem: "gridveil plan does not answer any more.",
        remedy: "Start it again in your terminal, and open the address that it prints.",
      };
    }
    if (mine !== asked) return; // something else was chosen in the meantime
    show(answer);
    if (answer.accuracy && !answer.accuracy.done) timer = setTimeout(send, WAIT, mine);
  };

  const show = (answer) => {
    const problem = answer.problem || (answer.accuracy && answer.accuracy.problem);
    $("problem").hidden = !problem;
    $("problem").textContent = problem ? [problem, answer.remedy].filter(Boolean).join(" ") : "";
    showFaults(answer.faults || {});
    for (const [name, value] of Object.entries(answer.read || {})) if (sliders[name]) follow(name, value);
    // What does not follow from what is chosen now is not shown: no figure of an earlier choice.
    if (answer.accuracy) showAccuracy(answer.accuracy);
    else clearAccuracy(answer.faults ? "Mend the field marked in red to see figures." : "");
    showGuarantee(answer.guarantee);
    showSizes(answer.sizes || []);
    $("budget").textContent = answer.budget ? answer.budget.text : "";
    $("budget").className = `budget ${answer.budget ? answer.budget.state : ""}`;
    $("budget").hidden = !answer.budget;
    file = answer.file || "";
    showCommand(answer.command, answer.faults);
  };
  const showFaults = (faults) => {
    for (const box of document.querySelectorAll(".fault")) {
      const id = box.id.slice(0, -"-fault".length);
      const text = faults[id] || "";
      if (box.textContent !== text) box.textContent = text;
      box.hidden = !text;
      if ($(id)) $(id).setAttribute("aria-invalid", String(Boolean(text)));
    }
  };
  const clearAccuracy = (words) => {
    $("status").textContent = "";
    $("progress").value = 0;
    $("metrics").replaceChildren();
    shownPictures = "";
    const note = make("p", words, "small");
    note.id = "no-picture";
    $("pictures").replaceChildren(note);
    for (const id of ["sweep", "shares", "share-names"]) $(id).replaceChildren();
    $("shares").setAttribute("aria-label", "Not known.");
    $("sweep-figure").hidden = true;
  };
  const metricBox = (one, runs) => {
    const box = make("div");
    const term = make("dt");
    term.append(make("span", one.title, "name"), make("br"), one.text);
    const value = make("dd");
    value.id = `metric-${one.name}`;
    if (one.mean === null) {
      value.textContent = runs ? "not defined" : "\u2026";
    } else {
      value.append(number(one.mean), " ", make("small", one.unit));
      value.append(make("span", `${number(one.low)} to ${number(one.high)}`, "range"));
    }
    box.append(term, value);
    return box;
  };
  const showAccuracy = (accuracy) => {
    $("status").textContent =
      accuracy.runs < accuracy.of ? `${accuracy.runs} of ${accuracy.of} runs` : `${accuracy.of} runs`;
    $("progress").max = accuracy.of;
    $("progress").value = accuracy.runs;
    $("metrics").replaceChildren(...accuracy.metrics.map((one) => metricBox(one, accuracy.runs)));
    const sources = accuracy.pictures.map((one) => one.source).join();
    if (!sources) {
      shownPictures = "";
      const words = accuracy.problem ? "No run could be made." : "The first run is being made\u2026";
      const note = make("p", words, "small");
      note.id = "no-picture";
      $("pictures").replaceChildren(note);
    } else if (sources !== shownPictures) {
      shownPictures = sources;
      $("pictures").replaceChildren(...accuracy.pictures.map(pictureBox));
    }
    $("sweep-figure").hidden = !accuracy.sweep;
    if (accuracy.sweep) $("sweep").innerHTML = accuracy.sweep;
    $("shares").replaceChildren(
      ...accuracy.shares.map((one, place) => {
        const part = make("span", undefined, `c${(place % 4) + 1}`);
        part.style.width = `${one.percent}%`;
        return part;
      }),
    );
    const words = accuracy.shares.map((one) => `${one.query} ${number(one.percent)}%`);
    $("shares").setAttribute("aria-label", words.join(", ") || "Not known yet.");
    $("share-names").replaceChildren(
      ...words.map((text, place) => {
        const item = make("li");
        item.append(make("span", undefined, `swatch c${(place % 4) + 1}`), text);
        return item;
      }),
    );
  };
  const pictureBox = (picture) => {
    const drawn = make("div");
    drawn.setAttribute("role", "img");
    drawn.setAttribute("aria-label", picture.alt);
    // Markup that the server drew: its texts are escaped there, and the policy runs no script in it.
    drawn.innerHTML = picture.source;
    const card = make("div", undefined, "card");
    card.append(drawn);
    const legend = make("ul", undefined, "legend");
    legend.append(
      ...picture.legend.map(([colour, words]) => {
        const item = make("li");
        item.append(make("span", undefined, `swatch ${colour}`), words);
        return item;
      }),
    );
    const figure = make("figure");
    figure.append(card, legend, make("figcaption", "One of the runs, beside the stand-in."));
    return figure;
  };
  const showGuarantee = (guarantee) => {
    $("strength").hidden = !guarantee;
    $("guarantee-more").hidden = !guarantee;
    if (!guarantee) {
      for (const id of ["strength", "strength-reason", "words", "changes"]) $(id).replaceChildren();
      return;
    }
    const strength = guarantee.strength;
    $("strength").className = `badge ${strength.level}`;
    $("strength").replaceChildren(make("b", strength.name), " ", strength.headline);
    $("strength-reason").textContent = strength.reason;
    $("words").replaceChildren(...guarantee.words.map((text) => make("p", text)));
    $("changes").replaceChildren(
      ...guarantee.changes.map((one) => {
        const row = make("tr");
        const change = make("th", one.change);
        change.scope = "row";
        row.append(change);
        for (const [name, text] of [
          ["Epsilon", one.epsilon],
          ["Odds change by at most", one.factor],
          ["From 50% sure to at most", one.certainty],
        ]) {
          const cell = make("td", text, "number");
          cell.dataset.name = name;
          row.append(cell);
        }
        return row;
      }),
    );
  };
  const showSizes = (tables) => {
    $("sizes").hidden = !tables.length;
    const warnings = tables.map((one) => one.warning).filter(Boolean);
    $("sizes-warning").hidden = !warnings.length;
    $("sizes-warning").textContent = warnings.join(" ");
    $("size-rows").replaceChildren(
      ...tables.flatMap((table) =>
        table.rows.map(([entry, noise, sure]) => {
          const row = make("tr");
          const name = make("th", `${table.title}, ${entry}`);
          name.scope = "row";
          row.append(name);
          for (const [title, text] of [["Noise", noise], ["A tenth more: sure at most", sure]]) {
            const cell = make("td", text, "number");
            cell.dataset.name = title;
            row.append(cell);
          }
          return row;
        }),
      ),
    );
  };
  const showCommand = (line, faults) => {
    const wrong = faults && Object.keys(faults).length;
    $("command").textContent = line || (wrong ? "Mend the fields marked in red to get the command." : "");
    $("command").classList.toggle("old", !line);
    $("copy").disabled = $("save").disabled = !line;
    if ($("copied").dataset.line !== line) $("copied").textContent = "";
  };

  const copy = async () => {
    const line = $("command").textContent;
    try {
      await navigator.clipboard.writeText(line);
      $("copied").textContent = "Copied. Run it in a terminal, in the folder of your file.";
    } catch {
      getSelection().selectAllChildren($("command"));
      $("copied").textContent = "Selected: copy it with Ctrl+C.";
    }
    $("copied").dataset.line = line;
  };

  const save = () => {
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([file], { type: "application/toml" }));
    link.download = "release.toml";
    link.click();
    URL.revokeObjectURL(link.href);
    $("copied").textContent = "Saved. Run it in the folder of your data: gridveil release release.toml";
    $("copied").dataset.line = $("command").textContent;
  };

  const begin = async () => {
    start = await (await fetch("api/start")).json();
    $("version").textContent = start.version;
    $("ledger-path").textContent = `Ledger: ${start.ledger}`;
    options("kinds", "kind", start.kinds, start.kinds[0].name, (name) => {
      chooseKind(name);
      ask();
    });
    $("kind-set").hidden = start.kinds.length < 2;
    $("epsilon").value = "1";
    pair("epsilon", $("epsilon-slider"), start.epsilons);
    chooseKind(start.kinds[0].name);
    for (const id of ["epsilon", "size", "dataset"]) $(id).addEventListener("input", ask);
    $("choice").addEventListener("submit", (event) => event.preventDefault());
    $("copy").addEventListener("click", copy);
    $("save").addEventListener("click", save);
    ask();
  };
  begin();
})();
