# The commands of README.md: `make example-forecasts` runs them in the checkout.
set -eu
out=${1:-runs/forecasts}
mkdir -p "$out"
for name in share air; do
    python examples/forecasts/make_series.py "$name" > "$out/$name.csv"
    seqkeras train forecasting "$out/$name.csv" --config "examples/forecasts/$name.toml" \
        --out "$out/$name"
    seqkeras export "$out/$name" "$out/$name-bundle" --overwrite
    seqkeras predict "$out/$name-bundle" "$out/$name.csv" --truncate > "$out/$name-next.txt"
    echo "$out/$name: forecast.png shows the forecasts, and $name-next.txt has what comes next"
done
