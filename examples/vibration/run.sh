# The commands of README.md: `make example-vibration` runs them in the checkout.
set -eu
out=${1:-runs/vibration}
mkdir -p "$out"
python examples/vibration/machine.py --recordings 160 > "$out/vibration.csv"
seqkeras train tagging "$out/vibration.csv" --numbers x,y --series-column recording --causal true \
    --units 32 --embedding-dim 16 --passes 20 --learning-rate 0.005 --out "$out/run"
seqkeras export "$out/run" "$out/bundle" --stream --overwrite
echo "a sensor, whose bearing breaks after two seconds; for how many frames each answer stays:"
python examples/vibration/machine.py --live --fault bearing | seqkeras stream "$out/bundle" | uniq -c
